package quarantine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
	"github.com/git-airlock/git-airlock/gitops/inner"
)

// modeTree stores a tree with an entry for each spelling of a mode, in git's order.
func (w *world) modeTree(spellings []string) (gitops.OID, []gitops.TreeEntry) {
	w.T.Helper()
	blob := w.Blob("content")
	below := gitops.OID(gitopstest.Input(w.T, w.Top, nil, fmt.Sprintf("100644 blob %s\tf\n", blob), "mktree"))
	var entries []gitops.TreeEntry
	for n, text := range spellings {
		e := gitops.TreeEntry{Name: fmt.Sprintf("n%06d", n), RawMode: text}
		e.Mode, _ = gitops.ParseMode(text)
		if e.OID = blob; e.Folder() {
			e.OID = below
		}
		entries = append(entries, e)
	}
	content, err := gitops.TreeBytes(entries) // all names are of one length: they are in order whatever the modes
	gitopstest.Check(w.T, err)
	return gitops.OID(gitopstest.Input(w.T, w.Top, nil, string(content), "hash-object", "-w", "-t", "tree", "--literally", "--stdin")), entries
}

// everyMode lists all modes of 16 bits as git would write them, with a leading zero, and with bits above the
// sixteenth.
func everyMode() []string {
	var all []string
	for m := range 1 << 16 {
		all = append(all, fmt.Sprintf("%o", m), fmt.Sprintf("0%o", m), fmt.Sprintf("%o", 1<<16+m), fmt.Sprintf("7654%06o", m))
	}
	return all
}

// TestModesAreGits checks that every mode is read as git reads it: in ls-tree, read-tree, and a comparison of trees.
func TestModesAreGits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tree, _ := w.modeTree(everyMode())
	look := Inspect(t.Context(), w.Git)
	defer look.Close()
	entries, err := look.Tree(t.Context(), tree)
	gitopstest.Check(t, err)
	var listed strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&listed, "%s %s %s\t%s\x00", e.Mode, map[bool]string{true: "tree", false: "blob"}[e.Folder()], e.OID, e.Name)
	}
	mine := strings.Split(listed.String(), "\x00")
	for n, want := range strings.Split(gitopstest.Input(t, w.Top, nil, "", "ls-tree", "-z", string(tree)), "\x00") {
		if want = strings.Replace(want, "160000 commit", "160000 blob", 1); mine[n] != want {
			t.Fatalf("the entry %q is read as %q, by git as %q", entries[n].RawMode, mine[n], want)
		}
	}

	changes, err := look.Diff(t.Context(), "", tree, WithoutLimits)
	gitopstest.Check(t, err)
	w.Run("read-tree", string(tree))
	index := strings.Split(strings.TrimSuffix(gitopstest.Input(t, w.Top, nil, "", "ls-files", "-s", "-z"), "\x00"), "\x00")
	if len(index) != len(changes) {
		t.Fatalf("%d files, in git's index %d", len(changes), len(index))
	}
	for n, c := range changes {
		if got := fmt.Sprintf("%s %s 0\t%s", c.New.Mode, c.New.OID, c.Path); got != index[n] {
			t.Fatalf("the change %q, in git's index %q", got, index[n])
		}
	}
}

// TestModesComparedAreGits checks that a change of a mode's spelling counts as a change exactly if git sees a change.
func TestModesComparedAreGits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	look := Inspect(t.Context(), w.Git)
	defer look.Close()
	all := everyMode()
	before, _ := w.modeTree(all)
	shifts := []int{1, 4, 64 * 4, 512 * 4, 4096 * 4}
	if testing.Short() {
		shifts = shifts[:2] // another spelling, and another mode
	}
	for _, shift := range shifts {
		after, _ := w.modeTree(append(slices.Clone(all[shift:]), all[:shift]...))
		want, err := w.Diff(t.Context(), before, after)
		gitopstest.Check(t, err)
		got, err := look.Diff(t.Context(), before, after, WithoutLimits)
		gitopstest.Check(t, err)
		if !slices.Equal(got, sortedChanges(want)) {
			t.Errorf("shifted by %d: %d changes, git sees %d", shift, len(got), len(want))
		}
	}
}

// A tree with a mode that git cannot read cannot be read here.
func TestUnreadableModes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	look := Inspect(t.Context(), w.Git)
	defer look.Close()
	for _, text := range []string{"", "8", "100648", "10064x", "-100644", "+100644", " 100644", "0x81a4", "100644\t"} {
		content, err := gitops.TreeBytes([]gitops.TreeEntry{{Name: "a", Entry: gitops.Entry{OID: w.Blob("x")}, RawMode: text + " "}})
		gitopstest.Check(t, err)
		content = append([]byte(text), content[len(text)+1:]...)
		tree := gitopstest.Input(t, w.Top, nil, string(content), "hash-object", "-w", "-t", "tree", "--literally", "--stdin")
		if _, err := gitopstest.TryCommand(w.Top, nil, "ls-tree", tree); err == nil {
			t.Errorf("git reads the mode %q", text)
		}
		if entries, err := look.Tree(t.Context(), gitops.OID(tree)); !isInvalid(err) {
			t.Errorf("the mode %q is read as %v, %v", text, entries, err)
		}
	}
}

// TestDiffStrict checks that each mode that git does not write is refused, also if it replaces a mode that git reads
// as the same. It is accepted where it was before.
func TestDiffStrict(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	look := Inspect(t.Context(), w.Git)
	defer look.Close()
	look.made = map[gitops.OID]object{}
	blob, proper := w.Blob("x"), 0
	below := gitops.OID(gitopstest.Input(t, w.Top, nil, fmt.Sprintf("100644 blob %s\tf\n", blob), "mktree"))
	plant := func(text, beside string) gitops.OID {
		m, _ := gitops.ParseMode(text)
		entries := []gitops.TreeEntry{{Name: "a", Entry: gitops.Entry{Mode: m, OID: blob}, RawMode: text}, {Name: "b", Entry: gitops.Entry{Mode: gitops.ModeFile, OID: gitops.OID(beside)}}}
		if m == gitops.ModeFolder {
			entries[0].OID = below
		}
		content, err := gitops.TreeBytes(entries)
		gitopstest.Check(t, err)
		id := gitops.HashObject(w.Format, "tree", content)
		look.made[id] = object{Kind: "tree", Content: content}
		return id
	}
	other := w.Blob("y")
	for n, text := range everyMode() {
		if n%4 > 0 && n%97 > 0 { // not each of the modes that are written otherwise
			continue
		}
		m, _ := gitops.ParseMode(text)
		tree := plant(text, string(blob))
		for name, before := range map[string]gitops.OID{"nothing": "", "git's own": plant(fmt.Sprintf("%o", uint16(m)), string(blob))} {
			changes, err := look.DiffStrict(t.Context(), before, tree, inner.DefaultLimits)
			switch {
			case gitops.ProperMode(text):
				if proper++; err != nil || len(changes) > 0 && changes[0].New.Mode != m && m != gitops.ModeFolder {
					t.Errorf("after %s, %s: %v, %v", name, text, changes, err)
				}
			case !isInvalid(err) || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), `"a"`):
				t.Fatalf("after %s, %s: %v", name, text, err)
			}
		}
		if changes, err := look.DiffStrict(t.Context(), tree, plant(text, string(other)), inner.DefaultLimits); err != nil || len(changes) != 1 {
			t.Fatalf("%s, as before: %v, %v", text, changes, err)
		}
		clear(look.made)
	}
	if proper != 2*6 {
		t.Errorf("%d modes pass", proper)
	}
}
