package quarantine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
	"github.com/git-airlock/git-airlock/gitops/inner"
)

// airlock is a minimal inner repository and the quarantine for its objects.
type airlock struct {
	*world
	outer      *world
	q          *Store
	base, root gitops.OID
	packs      string
}

// newInner creates an outer repository with the files, copies its tree into a quarantine, and creates an inner
// repository.
func newInner(t testing.TB, f gitopstest.Files, initArgs ...string) *airlock {
	outer := newWorld(t, initArgs...)
	outer.CommitAll(gitopstest.Files{"history": "x"})
	base := outer.CommitAll(f)
	q, err := Create(t.Context(), outer.Repository, filepath.Join(outer.State, "quarantine"))
	gitopstest.Check(t, err)
	i := &airlock{outer: outer, q: q, base: base, world: newWorld(t, initArgs...)}
	tree := gitops.OID(outer.Run("rev-parse", "HEAD^{tree}"))
	i.packs, err = q.TakeTree(t.Context(), outer.Repository, tree, base)
	gitopstest.Check(t, err)
	i.root, err = q.StoreCommit(t.Context(), gitops.Commit{Tree: tree, Author: "G <g@x> 1 +0000", Committer: "G <g@x> 1 +0000", Message: []byte("root\n")})
	gitopstest.Check(t, err)
	for _, ext := range []string{".pack", ".idx"} {
		content, err := os.ReadFile(i.packs + ext)
		gitopstest.Check(t, err)
		gitopstest.Check(t, os.WriteFile(filepath.Join(i.GitDir, "objects/pack", filepath.Base(i.packs)+ext), content, 0o444))
	}
	commit := gitopstest.Input(t, q.Dir, []string{"GIT_DIR=" + q.Dir}, "", "cat-file", "commit", string(i.root)) + "\n"
	if got := gitopstest.Input(t, i.Top, nil, commit, "hash-object", "-t", "commit", "-w", "--stdin"); gitops.OID(got) != i.root {
		t.Fatalf("root is %s inside, %s in the quarantine", got, i.root)
	}
	i.Run("reset", "-q", "--hard", string(i.root))
	return i
}

// workspace returns the inner repository as an exporter sees it.
func (i *airlock) workspace() inner.Workspace {
	return inner.Workspace{Dir: i.Top, Run: func(ctx context.Context, p inner.Process) (int, error) {
		cmd := exec.CommandContext(ctx, p.Argv[0], p.Argv[1:]...)
		cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = i.Top, append(os.Environ(), p.Env...), p.Stdin, p.Stdout, p.Stderr
		return gitopstest.ExitStatus(cmd)
	}}
}

// pack returns the pack that an exporter would send for want.
func (i *airlock) pack(want gitops.OID, have ...gitops.OID) []byte {
	i.T.Helper()
	var out bytes.Buffer
	gitopstest.Check(i.T, i.workspace().Pack(i.T.Context(), want, have, &out))
	return out.Bytes()
}

func (i *airlock) receive(want gitops.OID, have ...gitops.OID) {
	i.T.Helper()
	gitopstest.Check(i.T, i.q.Receive(i.T.Context(), bytes.NewReader(i.pack(want, have...)), inner.DefaultLimits))
}

// plant stores an object in the agent's repository without git's checks.
func (i *airlock) plant(kind, content string) gitops.OID {
	i.T.Helper()
	return gitops.OID(gitopstest.Input(i.T, i.Top, nil, content, "hash-object", "-t", kind, "-w", "--stdin", "--literally"))
}

// tree returns a tree object with one entry.
func (i *airlock) tree(mode, name string, id gitops.OID) gitops.OID {
	i.T.Helper()
	return i.plant("tree", mode+" "+name+"\x00"+string(raw(i.T, id)))
}

func raw(t testing.TB, id gitops.OID) []byte {
	t.Helper()
	var b []byte
	for k := 0; k < len(id); k += 2 {
		var c byte
		if _, err := fmt.Sscanf(string(id[k:k+2]), "%02x", &c); err != nil {
			t.Fatal(err)
		}
		b = append(b, c)
	}
	return b
}

func (i *airlock) commitOf(tree gitops.OID, parents ...gitops.OID) gitops.OID {
	i.T.Helper()
	c := gitops.Commit{Tree: tree, Parents: parents, Author: "G <g@x> 2 +0000", Committer: "G <g@x> 2 +0000", Message: []byte("m\n")}
	return i.plant("commit", string(c.Bytes()))
}

func isInvalid(err error) bool {
	var refused *inner.Invalid
	return errors.As(err, &refused)
}

// TestTakeTreeTakesOnlyTheSnapshot checks that the objects of a snapshot are those of one tree.
func TestTakeTreeTakesOnlyTheSnapshot(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			i := newInner(t, gitopstest.Files{"a": "1", "d/b": "2", "l": gitopstest.LinkTo + "a", "x": gitopstest.Execute + "3"}, "--object-format="+format)
			if got, want := i.Run("rev-parse", "HEAD^{tree}"), i.outer.Run("rev-parse", "HEAD^{tree}"); got != want {
				t.Errorf("the root's tree is %s, want %s", got, want)
			}
			q := &world{&gitopstest.Repo{T: t, Repository: &gitops.Repository{Top: i.q.Dir}}}
			if got := q.Run("rev-list", "--all"); got != "" {
				t.Errorf("the quarantine has refs at %s", got)
			}
			history := i.outer.Run("rev-parse", "HEAD~1")
			if _, err := gitopstest.TryCommand(i.q.Dir, nil, "cat-file", "-e", history); err == nil {
				t.Error("the quarantine has the history")
			}
			q.Run("fsck", "--no-dangling", string(i.base), string(i.root))
			i.outer.Run("fsck", "--no-dangling")
		})
	}
}

func TestTakeTreeMakesOnePack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := gitopstest.Files{}
	for i := range 20 {
		f[fmt.Sprint(i)] = randomText(i, 200<<10)
	}
	base := w.CommitAll(f)
	w.Run("config", "pack.packSizeLimit", "1m")
	q, err := Create(t.Context(), w.Repository, filepath.Join(w.State, "q"))
	gitopstest.Check(t, err)
	pack, err := q.TakeTree(t.Context(), w.Repository, gitops.OID(w.Run("rev-parse", "HEAD^{tree}")), base)
	gitopstest.Check(t, err)
	for _, ext := range []string{".pack", ".idx"} {
		if _, err := os.Stat(pack + ext); err != nil {
			t.Error(err)
		}
	}
	gitopstest.Check(t, q.Connected(t.Context(), base, nil, inner.DefaultLimits))
}

// randomText returns text that cannot be compressed much.
func randomText(seed, size int) string {
	var b strings.Builder
	x := uint64(seed)*2654435761 + 88172645463325252
	for b.Len() < size {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		fmt.Fprintf(&b, "%016x", x)
	}
	return b.String()
}

func TestReceiveRefuses(t *testing.T) {
	t.Parallel()
	i := newInner(t, gitopstest.Files{"a": "1", "big": randomText(2, 30<<10)})
	good := i.pack(i.CommitAll(gitopstest.Files{"a": "2", "c": randomText(3, 30<<10)}), i.root)
	corrupt := slices.Clone(good)
	corrupt[len(corrupt)/2] ^= 0x20
	for name, pack := range map[string][]byte{
		"nothing":   {},
		"garbage":   []byte(randomText(4, 10<<10)),
		"truncated": good[:len(good)/2],
		"no end":    good[:len(good)-4],
		"corrupt":   corrupt,
	} {
		started := time.Now()
		if err := i.q.Receive(t.Context(), bytes.NewReader(pack), inner.DefaultLimits); !isInvalid(err) {
			t.Errorf("%s: %v, want *Invalid", name, err)
		}
		if took := time.Since(started); took > atOnce {
			t.Errorf("%s: refused after %s", name, took)
		}
	}
	limits := inner.DefaultLimits
	limits.Pack = 1000
	if err := i.q.Receive(t.Context(), bytes.NewReader(good), limits); !isInvalid(err) {
		t.Errorf("too large: %v, want *Invalid", err)
	}
	i.nothingKept()
}

// TestReceiveEndsInLittleMemory receives a few kilobytes of deltas that need 60 MB of memory.
func TestReceiveEndsInLittleMemory(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("memory is bounded on Linux")
	}
	i := newInner(t, gitopstest.Files{"a": "1"})
	i.Write(gitopstest.Files{"zeros": strings.Repeat("\x00", 60_000_000), "more": strings.Repeat("\x00", 60_000_001)})
	i.Run("add", "-A")
	i.Run("-c", "core.bigFileThreshold=1g", "commit", "-q", "-m", "zeros")
	i.Run("-c", "core.bigFileThreshold=1g", "repack", "-adq")
	tip := gitops.OID(i.Run("rev-parse", "HEAD"))
	limits := inner.DefaultLimits
	limits.Memory = 40 << 20
	err := i.q.Receive(t.Context(), bytes.NewReader(i.pack(tip, i.root)), limits)
	if !isInvalid(err) || !strings.Contains(err.Error(), "airlock.limit.memory") {
		t.Errorf("Receive: %v, want *Invalid for the memory", err)
	}
	i.nothingKept()
	i.receive(tip, i.root)
}

// nothingKept checks that the quarantine has only its first objects.
func (i *airlock) nothingKept() {
	i.T.Helper()
	entries, err := os.ReadDir(filepath.Join(i.q.Dir, "objects/pack"))
	gitopstest.Check(i.T, err)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), filepath.Base(i.packs)) {
			i.T.Errorf("kept: %s", e.Name())
		}
	}
}

// TestReceiveRefusesInvalidObjects sends objects that git could store and must not accept.
func TestReceiveRefusesInvalidObjects(t *testing.T) {
	t.Parallel()
	i := newInner(t, gitopstest.Files{"a": "1"})
	blob := i.plant("blob", "x")
	sub := i.tree("100644", "config", blob)
	ident := "author G <g@x> 2 +0000\ncommitter G <g@x> 2 +0000\n"
	plain := i.tree("100644", "f", blob)
	for name, tip := range map[string]gitops.OID{
		".git":           i.commitOf(i.tree("40000", ".git", sub), i.root),
		".GIT":           i.commitOf(i.tree("40000", ".GIT", sub), i.root),
		"git~1":          i.commitOf(i.tree("40000", "git~1", sub), i.root),
		"..":             i.commitOf(i.tree("40000", "..", sub), i.root),
		".":              i.commitOf(i.tree("40000", ".", sub), i.root),
		"a slash":        i.commitOf(i.tree("100644", "a/b", blob), i.root),
		"hidden .git":    i.commitOf(i.tree("40000", ".g\u200cit", sub), i.root),
		"no author":      i.plant("commit", "tree "+string(plain)+"\nparent "+string(i.root)+"\ncommitter G <g@x> 2 +0000\n\nm\n"),
		"two authors":    i.plant("commit", "tree "+string(plain)+"\nparent "+string(i.root)+"\nauthor A <a@x> 2 +0000\n"+ident+"\nm\n"),
		"no date":        i.plant("commit", "tree "+string(plain)+"\nparent "+string(i.root)+"\nauthor G <g@x>\ncommitter G <g@x> 2 +0000\n\nm\n"),
		"NUL in headers": i.plant("commit", "tree "+string(plain)+"\nparent "+string(i.root)+"\nauthor G\x00 <g@x> 2 +0000\ncommitter G <g@x> 2 +0000\n\nm\n"),
	} {
		if err := i.q.Receive(t.Context(), bytes.NewReader(i.pack(tip, i.root)), inner.DefaultLimits); !isInvalid(err) {
			t.Errorf("%s: %v, want *Invalid", name, err)
		}
	}
	i.nothingKept()
}

func TestReceiveEndsInTime(t *testing.T) {
	t.Parallel()
	i := newInner(t, gitopstest.Files{"a": "1"})
	limits := inner.DefaultLimits
	limits.Time = 200 * time.Millisecond
	r, w := io.Pipe()
	defer w.Close()
	started := time.Now()
	if err := i.q.Receive(t.Context(), r, limits); !isInvalid(err) || !strings.Contains(err.Error(), "airlock.limit.time") {
		t.Errorf("Receive: %v, want *Invalid for the time", err)
	}
	if took := time.Since(started); took > atOnce {
		t.Errorf("ended after %s", took)
	}
	i.nothingKept()
}

func TestConnectedRefuses(t *testing.T) {
	t.Parallel()
	i := newInner(t, gitopstest.Files{"a": "1"})
	// The outer repository has these; the snapshot does not hold them, and nobody exported them.
	history := gitops.OID(i.outer.Run("rev-parse", "HEAD~1"))
	missing := gitops.OID(strings.Repeat("ab", 20))
	snapshot := gitops.OID(i.Run("rev-parse", "HEAD^{tree}"))
	secret := i.outer.Blob("a secret")
	for name, tip := range map[string]gitops.OID{
		"a blob of the outer repository":   i.commitOf(i.tree("100644", "f", secret), i.root),
		"a commit of the outer repository": i.commitOf(snapshot, history),
		"a tree that nobody has":           i.commitOf(missing, i.root),
		"a blob that nobody has":           i.commitOf(i.tree("100644", "f", missing), i.root),
		"a parent that nobody has":         i.commitOf(snapshot, i.root, missing),
	} {
		// Only the commit and its tree come out: what they name is not there to be packed.
		content := gitopstest.Input(t, i.Top, nil, "", "cat-file", "commit", string(tip)) + "\n"
		objects := string(tip) + "\n"
		if tree, _, _ := strings.Cut(strings.TrimPrefix(content, "tree "), "\n"); gitops.OID(tree) != missing {
			objects += tree + "\n"
		}
		var pack bytes.Buffer
		gitopstest.Check(t, i.Look(t.Context(), gitops.Call{Args: []string{"pack-objects", "--stdout", "-q"}, Stdin: strings.NewReader(objects), Stdout: &pack}))
		err := i.q.Receive(t.Context(), &pack, inner.DefaultLimits)
		for way, examine := range i.ways() {
			examined := err
			if err == nil {
				examined = examine(t, tip, inner.DefaultLimits, i.root)
			}
			if !isInvalid(examined) {
				t.Errorf("%s, by %s: %v, want *Invalid", name, way, examined)
			}
		}
	}
	for name, tip := range map[string]gitops.OID{"a tree": snapshot, "a blob": gitops.OID(i.Run("rev-parse", "HEAD:a")), "nothing": missing, "history": history} {
		for way, examine := range i.ways() {
			if err := examine(t, tip, inner.DefaultLimits); !isInvalid(err) {
				t.Errorf("%s as the tip, by %s: %v, want *Invalid", name, way, err)
			}
		}
	}
	for _, examine := range i.ways() {
		gitopstest.Check(t, examine(t, i.root, inner.DefaultLimits))
	}
}

// ways are the ways to check that a commit is complete and within the limits if others are. They must agree.
func (i *airlock) ways() map[string]func(t *testing.T, tip gitops.OID, limits inner.Limits, known ...gitops.OID) error {
	return map[string]func(*testing.T, gitops.OID, inner.Limits, ...gitops.OID) error{
		"git": func(t *testing.T, tip gitops.OID, limits inner.Limits, known ...gitops.OID) error {
			if err := i.q.Connected(t.Context(), tip, known, limits); err != nil {
				return err
			}
			return i.q.CheckSizes(t.Context(), tip, known, limits)
		},
		"walk": func(t *testing.T, tip gitops.OID, limits inner.Limits, known ...gitops.OID) error {
			look := i.q.Inspect(t.Context())
			defer look.Close()
			links, err := look.History(t.Context(), tip, func(id gitops.OID) bool { return slices.Contains(known, id) }, limits)
			if err != nil {
				return err
			}
			return look.Walk(t.Context(), links, limits, nil)
		},
	}
}

func TestCheckSizes(t *testing.T) {
	t.Parallel()
	i := newInner(t, gitopstest.Files{"a": "1"})
	blob := i.CommitAll(gitopstest.Files{"big": strings.Repeat("0", 5000)})
	i.Write(gitopstest.Files{"big": gitopstest.Absent, "small": "not 1"})
	i.Run("add", "-A")
	i.Run("commit", "-q", "-m", strings.Repeat("m", 5000))
	tip := gitops.OID(i.Run("rev-parse", "HEAD"))
	i.receive(tip, i.root)
	limits := inner.DefaultLimits
	limits.Blob, limits.Commit = 6000, 6000
	for _, examine := range i.ways() {
		gitopstest.Check(t, examine(t, tip, limits, i.root))
	}
	ways := i.ways()
	ways["inside"] = func(t *testing.T, tip gitops.OID, limits inner.Limits, known ...gitops.OID) error {
		return i.workspace().CheckSizes(t.Context(), tip, known, limits)
	}
	for name, change := range map[string]func(*inner.Limits){
		"blob":   func(l *inner.Limits) { l.Blob = 4999 },
		"commit": func(l *inner.Limits) { l.Commit = 4999 },
		"the":    func(l *inner.Limits) { l.Pack = 5004 }, // "the new files take more": both together
	} {
		small := limits
		change(&small)
		for way, examine := range ways {
			if way == "walk" && name == "the" {
				continue // it cannot tell a file that is new from one that was moved
			}
			started := time.Now()
			err := examine(t, tip, small, i.root)
			if !isInvalid(err) || !strings.HasPrefix(err.Error(), name+" ") {
				t.Errorf("%s, by %s: %v, want *Invalid that names it", name, way, err)
			}
			if took := time.Since(started); took > atOnce {
				t.Errorf("%s: refused after %s", name, took)
			}
		}
	}
	// What is known already is not looked at again.
	limits.Blob = 4999
	for _, examine := range ways {
		gitopstest.Check(t, examine(t, tip, limits, blob))
	}
}

func TestHistoryOfMerges(t *testing.T) {
	t.Parallel()
	i := newInner(t, gitopstest.Files{"a": "1"})
	tree := gitops.OID(i.Run("rev-parse", "HEAD^{tree}"))
	c := func(message, encoding string, parents ...gitops.OID) gitops.OID {
		commit := gitops.Commit{Tree: tree, Parents: parents, Author: "A <a@x> 3 +0130", Committer: "C <c@x> 9000 -0200", Encoding: encoding, Message: []byte(message)}
		return i.plant("commit", string(commit.Bytes()))
	}
	one := c("one\n", "", i.root)
	two := c("", "", i.root)
	three := c("caf\xe9\n\n\n", "ISO-8859-1", one)
	other := c("another root, no newline at the end", "")
	octopus := c("\n\n  lead\r\n", "", three, two, other)
	tip := c("tip\n", "", octopus)
	i.receive(tip, i.root)
	byGit, err := i.q.History(t.Context(), tip, []gitops.OID{i.root})
	gitopstest.Check(t, err)
	look := i.q.Inspect(t.Context())
	defer look.Close()
	read, err := look.History(t.Context(), tip, func(id gitops.OID) bool { return id == i.root }, inner.DefaultLimits)
	gitopstest.Check(t, err)
	for _, links := range [][]Link{byGit, read} {
		seen := map[gitops.OID]int{}
		for n, l := range links {
			for _, p := range l.Parents {
				if _, ok := seen[p]; !ok && p != i.root {
					t.Errorf("%s comes before its parent %s", l.Commit, p)
				}
			}
			seen[l.Commit] = n
			if l.Commit == octopus && !slices.Equal(l.Parents, []gitops.OID{three, two, other}) {
				t.Errorf("octopus has the parents %v", l.Parents)
			}
		}
		if len(seen) != 6 || seen[tip] != 5 {
			t.Errorf("history %v", links)
		}
	}
}

// The quarantine's git ignores the configuration and the environment of the user and of the caller.
func TestQuarantineIsClosed(t *testing.T) {
	t.Parallel()
	i := newInner(t, gitopstest.Files{"a": "1"})
	config, err := i.q.Output(t.Context(), "config", "--list", "--show-scope")
	gitopstest.Check(t, err)
	for line := range strings.Lines(config) {
		if !strings.HasPrefix(line, "local\t") && !strings.HasPrefix(line, "command\t") {
			t.Errorf("obeyed: %s", line)
		}
	}
	if content, err := os.ReadFile(filepath.Join(i.q.Dir, "objects/info/alternates")); err == nil {
		t.Errorf("the quarantine borrows objects from %s", content)
	}
	if info, err := os.Stat(i.q.Dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the quarantine has mode %v, %v", info.Mode(), err)
	}
}
