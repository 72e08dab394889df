package quarantine

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // a pack's checksum
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// objectsOf lists all objects of a repository by name, as git reads them.
func objectsOf(t *testing.T, w *world) map[gitops.OID]object {
	t.Helper()
	var out bytes.Buffer
	gitopstest.Check(t, w.Look(t.Context(), gitops.Call{Args: []string{"cat-file", "--batch-all-objects", "--batch"}, Stdout: &out}))
	all := map[gitops.OID]object{}
	for out.Len() > 0 {
		line, err := out.ReadString('\n')
		gitopstest.Check(t, err)
		var id gitops.OID
		var kind string
		var size int
		_, err = fmt.Sscanf(line, "%s %s %d", &id, &kind, &size)
		gitopstest.Check(t, err)
		all[id] = object{Kind: kind, Content: bytes.Clone(out.Next(size))}
		out.Next(1)
	}
	return all
}

// checkReader checks that an inspector reads the same objects as git, and each of them with go-git if inProcess is
// set.
func checkReader(t *testing.T, look *Inspector, inProcess bool, want map[gitops.OID]object) {
	t.Helper()
	for id, o := range want {
		if _, ok := look.stored(id); ok != inProcess {
			t.Errorf("%s %s of %d bytes is read in process: %v", o.Kind, id, len(o.Content), ok)
		}
		got, err := look.whole(t.Context(), id)
		if err != nil || got.Kind != o.Kind || !bytes.Equal(got.Content, o.Content) {
			t.Errorf("%s %s of %d bytes: %s of %d, %v", o.Kind, id, len(o.Content), got.Kind, len(got.Content), err)
		}
		kind, size, err := look.info(t.Context(), id)
		if err != nil || kind != o.Kind || size != int64(len(o.Content)) {
			t.Errorf("%s %s of %d bytes: %s of %d, %v", o.Kind, id, len(o.Content), kind, size, err)
		}
	}
	for _, id := range []gitops.OID{"", "abc", gitops.OID(strings.Repeat("ab", 20)), gitops.OID(strings.Repeat("ab", 32)), "../../../../../../../../../../etc/passwd"} {
		if _, err := look.whole(t.Context(), id); err == nil {
			t.Errorf("%q: no error", id)
		}
	}
}

// Every reader must pass this test: go-git, and git cat-file, which reads all objects that go-git does not.
func TestReadersReadWhatGitReads(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		format    string
		inProcess bool
	}{"go-git": {"sha1", true}, "cat-file": {"sha1", false}, "sha256": {"sha256", false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "--object-format="+c.format)
			text := randomText(1, 30<<10)
			for n := range 12 {
				w.CommitAll(gitopstest.Files{"big": text[:n*1000] + fmt.Sprint(n) + text[n*1000:], fmt.Sprint("d/e/", n): "x", "empty": ""})
			}
			w.Run("tag", "-a", "-m", "a tag", "v1")
			var stream strings.Builder // more names than are read at once begin alike
			for n := range 256 * 2 * idxWindow {
				fmt.Fprintf(&stream, "blob\ndata %d\n%d\n", len(fmt.Sprint(n)), n)
			}
			gitopstest.Input(t, w.Top, nil, stream.String(), "fast-import", "--quiet")
			look := Inspect(t.Context(), w.Git)
			defer func() { _ = look.Close() }()
			if name != "cat-file" {
				look.stores = openFolders(c.format, filepath.Join(w.GitDir, "objects"))
			}
			want := objectsOf(t, w)
			checkReader(t, look, c.inProcess, want)
			w.Run("repack", "-a", "-d", "-k", "-q", "-f", "--depth=50", "--window=20")
			w.Run("prune-packed")
			checkReader(t, look, c.inProcess, want) // in a pack by now, which had not been there
			if testing.Short() {
				return
			}
			w.Run("-c", "repack.useDeltaBaseOffset=false", "repack", "-a", "-d", "-k", "-q", "-f")
			checkReader(t, look, c.inProcess, want)
			w.CommitAll(gitopstest.Files{"another": "1"})
			w.Run("repack", "-d", "-q")
			w.Run("prune-packed")
			checkReader(t, look, c.inProcess, objectsOf(t, w))
		})
	}
}

// Objects that are too large to be held in memory are read by git.
func TestStoreIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	large := w.Blob(strings.Repeat("large", storeLimit/5+1))
	for _, how := range []string{"loose", "packed"} {
		s := openFolders("sha1", filepath.Join(w.GitDir, "objects"))[0]
		read, info := s.readLoose, s.infoLoose
		if how == "packed" {
			read, info = s.read, s.info
		}
		if _, err := read(large); !errors.Is(err, errNotHere) {
			t.Errorf("%s: %v", how, err)
		}
		if _, size, err := info(large); err != nil || size <= storeLimit {
			t.Errorf("%s: %d bytes, %v", how, size, err)
		}
		s.close()
		gitopstest.Input(t, w.Top, nil, string(large)+"\n", "pack-objects", "-q", filepath.Join(w.GitDir, "objects/pack/pack"))
		w.Run("prune-packed")
	}
	look := Inspect(t.Context(), w.Git)
	defer look.Close()
	look.stores = openFolders("sha1", filepath.Join(w.GitDir, "objects"))
	if head, size, err := look.Blob(t.Context(), large, 5); string(head) != "large" || size <= storeLimit || err != nil {
		t.Errorf("an inspector: %q of %d bytes, %v", head, size, err)
	}
}

// A long chain of large deltas, which are small when compressed, is also read by git.
func TestStoreIsBoundedByDeltas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const size, links = storeLimit / 2, 8
	var b bytes.Buffer
	b.WriteString("PACK")
	gitopstest.Check(t, binary.Write(&b, binary.BigEndian, [2]uint32{2, links + 1}))
	entry := func(kind int, distance int, content []byte) {
		n := len(content)
		head := byte(kind<<4 | n&15)
		for n >>= 4; n > 0; n >>= 7 {
			b.WriteByte(head | 0x80)
			head = byte(n & 0x7f)
		}
		b.WriteByte(head)
		if kind == 6 {
			coded := []byte{byte(distance & 0x7f)}
			for distance >>= 7; distance > 0; distance >>= 7 {
				distance--
				coded = append([]byte{0x80 | byte(distance&0x7f)}, coded...)
			}
			b.Write(coded)
		}
		z := zlib.NewWriter(&b)
		_, _ = z.Write(content)
		gitopstest.Check(t, z.Close())
	}
	before := b.Len()
	entry(3, 0, []byte("x"))
	was := 1
	var last gitops.OID
	for i := range links {
		var delta []byte
		for _, n := range []int{was, size + 1} {
			for ; n > 0x7f; n >>= 7 {
				delta = append(delta, byte(n)|0x80)
			}
			delta = append(delta, byte(n))
		}
		content := append(make([]byte, size), byte(i))
		for rest := content; len(rest) > 0; {
			n := min(len(rest), 127)
			delta = append(append(delta, byte(n)), rest[:n]...)
			rest = rest[n:]
		}
		at := b.Len()
		entry(6, at-before, delta)
		before, was, last = at, size+1, gitops.HashObject("sha1", "blob", content)
	}
	sum := sha1.Sum(b.Bytes())
	b.Write(sum[:])
	gitopstest.Input(t, w.Top, nil, b.String(), "index-pack", "--stdin", "--strict")
	s := openFolders("sha1", filepath.Join(w.GitDir, "objects"))[0]
	defer s.close()
	if _, err := s.read(last); !errors.Is(err, errNotHere) {
		t.Errorf("%v", err)
	}
	if kind, n, err := s.info(last); kind != "blob" || n != size+1 || err != nil {
		t.Errorf("%s of %d bytes, %v", kind, n, err)
	}
	look := Inspect(t.Context(), w.Git)
	defer look.Close()
	look.stores = []*objectFolder{s}
	if head, n, err := look.Blob(t.Context(), last, 3); len(head) != 3 || n != size+1 || err != nil {
		t.Errorf("an inspector: %q of %d bytes, %v", head, n, err)
	}
}

// A damaged pack never returns wrong content, and never ends the program.
func TestStoreOfDamagedPacks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := randomText(1, 3<<10)
	for n := range 8 {
		w.CommitAll(gitopstest.Files{"big": text[:n*100] + fmt.Sprint(n) + text[n*100:]})
	}
	w.Run("repack", "-a", "-d", "-k", "-q", "-f")
	w.Run("prune-packed")
	want := objectsOf(t, w)
	idx, err := filepath.Glob(filepath.Join(w.GitDir, "objects/pack/*.idx"))
	gitopstest.Check(t, err)
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		dir := t.TempDir()
		gitopstest.Check(t, os.Mkdir(filepath.Join(dir, "pack"), 0o755))
		for i, name := range []string{idx[0], strings.TrimSuffix(idx[0], "idx") + "pack"} {
			content, err := os.ReadFile(name)
			gitopstest.Check(t, err)
			if i == n%2 {
				content[r.IntN(len(content))] ^= byte(1 << r.IntN(8))
				content = content[:len(content)-r.IntN(2)*r.IntN(len(content))]
			}
			gitopstest.Check(t, os.WriteFile(filepath.Join(dir, "pack", filepath.Base(name)), content, 0o644))
		}
		s := openFolders("sha1", dir)[0]
		for id, o := range want {
			got, err := s.read(id)
			if err == nil && n%2 == 1 && gitops.HashObject("sha1", got.Kind, got.Content) != id && len(got.Content) == len(o.Content) {
				t.Logf("%s is %q", id, got.Content) // the checksum of a delta's base cannot tell
			}
			_, _, _ = s.info(id)
		}
		s.close()
	}
}

// FuzzPack reads arbitrary bytes as an entry of a pack.
func FuzzPack(f *testing.F) {
	f.Add([]byte("\x3bx\x9c\x01\x00\x00\xff\xff"))
	f.Add([]byte("\x65\x0cx\x9c\x63\x60\x00\x00"))
	f.Add([]byte("\x75aaaaaaaaaaaaaaaaaaaax\x9c"))
	f.Fuzz(func(t *testing.T, entry []byte) {
		folder := openFolders("sha1", t.TempDir())[0]
		index, err := os.Open(os.DevNull)
		gitopstest.Check(t, err)
		p := &pack{packIndex: &packIndex{file: index, idx: index, hash: sha1.Size}, file: index, scan: packfile.NewScanner(bytes.NewReader(entry))}
		defer p.close()
		for offset := range min(len(entry), 30) {
			func() (err error) {
				defer contain(&err)
				if o, err := folder.packed(p, int64(offset)); err == nil && len(o.Content) > storeLimit {
					t.Errorf("%d bytes", len(o.Content))
				}
				_, _, err = p.info(int64(offset))
				return err
			}()
		}
	})
}

// A panic in go-git becomes an error.
func TestPanicsAreContained(t *testing.T) {
	t.Parallel()
	err := func() (err error) {
		defer contain(&err)
		panic("as it may")
	}()
	if !errors.Is(err, errNotHere) {
		t.Errorf("%v", err)
	}
}

// An object that is in no pack is searched in each of them.
func TestSearchInPackIndexAllocatesNothing(t *testing.T) {
	i := newInner(t, gitopstest.Files{"a": "1", "d/b": "2"})
	p, err := openIndex(i.packs+".idx", 20)
	gitopstest.Check(t, err)
	defer p.close()
	name := make([]byte, 20)
	got := testing.AllocsPerRun(10, func() {
		for first := range 256 {
			name[0] = byte(first)
			if _, found, err := p.find(name); found || err != nil {
				t.Errorf("%x: found %v, %v", name, found, err)
			}
		}
	})
	if got > 0 {
		t.Errorf("a search takes allocations: %v for 256 searches", got)
	}
}

// The cycle of a landing reads the same pack of the quarantine from both sides of the bridge.
func TestBridgeSharesFolderOfQuarantine(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		i := newInner(t, gitopstest.Files{"a": "1"}, "--object-format="+format)
		b, err := i.q.Bridge(i.outer.Repository, nil, filepath.Join(i.outer.State, "bridge"))
		gitopstest.Check(t, err)
		defer b.Close()
		inside := i.q.Inspect(t.Context())
		across := b.Inspect(t.Context(), inside)
		if format == "sha1" && (len(across.stores) != 3 || across.stores[1] != inside.stores[0]) {
			t.Errorf("the bridge has its own reader of the quarantine: %v, %v", across.stores, inside.stores)
		}
		gitopstest.Check(t, across.Close())
		if c, err := inside.Commit(t.Context(), i.root); err != nil || c.Tree == "" {
			t.Errorf("%s: after the bridge's inspector is closed: %v, %v", format, c, err)
		}
		gitopstest.Check(t, inside.Close())
	}
}

func TestInspectorForgets(t *testing.T) {
	t.Parallel()
	i := newInner(t, gitopstest.Files{"a": "1"})
	look := i.q.Inspect(t.Context())
	defer look.Close()
	for range 2 {
		look.read = newGenerations[gitops.OID, readObject](readKept, largestRead)
		c, err := look.Commit(t.Context(), i.root)
		gitopstest.Check(t, err)
		_, err = look.Tree(t.Context(), c.Tree)
		gitopstest.Check(t, err)
		folder := look.stores[0]
		if folder.entries.held == 0 {
			t.Fatal("an inspector keeps nothing of a pack")
		}
		if look.Forget(); folder.entries.held+folder.bases.held > 0 {
			t.Errorf("an inspector keeps %d bytes of packs", folder.entries.held+folder.bases.held)
		}
	}
}

// A cache keeps what was read last, within the size of two generations.
func TestGenerationsHoldTheirSize(t *testing.T) {
	t.Parallel()
	const most, one = 100 * (10 + keptBeside), 10
	g := newGenerations[int, int](most, one)
	for n := range 1000 {
		g.keep(n, n, one)
		if got, ok := g.get(0); !ok || got != 0 {
			t.Fatalf("a value that is read again is gone after %d others: %d, %v", n, got, ok)
		}
	}
	held := 0
	for _, generation := range []map[int]sized[int]{g.young, g.old} {
		for _, v := range generation {
			held += v.bytes + keptBeside
		}
	}
	if _, ok := g.get(999); !ok || held > 2*most {
		t.Errorf("%d bytes held, want at most %d, and the newest value (%v)", held, 2*most, ok)
	}
	if g.keep(-1, 1, one+1); g.young[-1].bytes > 0 {
		t.Error("a value that is too large is kept")
	}
}
