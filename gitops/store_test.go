package gitops

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
)

// objectsOf lists all objects of a repository by their names, as git reads them.
func objectsOf(t *testing.T, w *world) map[OID]object {
	t.Helper()
	var out bytes.Buffer
	check(t, w.Look(t.Context(), Call{Args: []string{"cat-file", "--batch-all-objects", "--batch"}, Stdout: &out}))
	all := map[OID]object{}
	for out.Len() > 0 {
		line, err := out.ReadString('\n')
		check(t, err)
		var id OID
		var kind string
		var size int
		_, err = fmt.Sscanf(line, "%s %s %d", &id, &kind, &size)
		check(t, err)
		all[id] = object{kind, bytes.Clone(out.Next(size))}
		out.Next(1)
	}
	return all
}

// checkStore wants a store to read what git reads.
func checkStore(t *testing.T, s *store, want map[OID]object) {
	t.Helper()
	for id, o := range want {
		got, err := s.read(id)
		kind, size, infoErr := s.info(id)
		if err != nil {
			got, err = s.readLoose(id)
			kind, size, infoErr = s.infoLoose(id)
		}
		if err != nil || got.kind != o.kind || !bytes.Equal(got.content, o.content) {
			t.Errorf("%s %s of %d bytes: %s of %d, %v", o.kind, id, len(o.content), got.kind, len(got.content), err)
		}
		if infoErr != nil || kind != o.kind || size != int64(len(o.content)) {
			t.Errorf("%s %s of %d bytes: %s of %d, %v", o.kind, id, len(o.content), kind, size, err)
		}
	}
}

func TestStoreReadsWhatGitReads(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "--object-format="+format)
			text := randomText(1, 30<<10)
			for n := range 12 {
				w.commit(files{"big": text[:n*1000] + fmt.Sprint(n) + text[n*1000:], fmt.Sprint("d/e/", n): "x", "empty": ""})
			}
			w.git("tag", "-a", "-m", "a tag", "v1")
			var stream strings.Builder // more names than are read at once begin alike
			for n := range 256 * 2 * idxWindow {
				fmt.Fprintf(&stream, "blob\ndata %d\n%d\n", len(fmt.Sprint(n)), n)
			}
			input(t, w.Top, nil, stream.String(), "fast-import", "--quiet")
			s := openStore(filepath.Join(w.GitDir, "objects"), format)
			defer s.close()
			want := objectsOf(t, w)
			checkStore(t, s, want)
			w.git("repack", "-a", "-d", "-k", "-q", "-f", "--depth=50", "--window=20")
			w.git("prune-packed")
			checkStore(t, s, want) // in a pack by now, which had not been there
			w.git("-c", "repack.useDeltaBaseOffset=false", "repack", "-a", "-d", "-k", "-q", "-f")
			checkStore(t, s, want)
			w.commit(files{"another": "1"})
			w.git("repack", "-d", "-q")
			w.git("prune-packed")
			checkStore(t, s, objectsOf(t, w))
			for _, id := range []OID{"", "abc", OID(strings.Repeat("ab", 20)), OID(strings.Repeat("ab", 32)), "../../../../../../../../../../etc/passwd"} {
				if _, err := s.read(id); !errors.Is(err, errNotHere) {
					t.Errorf("%q: %v", id, err)
				}
				if _, err := s.readLoose(id); err == nil {
					t.Errorf("%q: no error", id)
				}
			}
		})
	}
}

// What is too large to be held is left to git.
func TestStoreIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	large := w.blob(strings.Repeat("large", storeLimit/5+1))
	for _, how := range []string{"loose", "packed"} {
		s := openStore(filepath.Join(w.GitDir, "objects"), "sha1")
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
		input(t, w.Top, nil, string(large)+"\n", "pack-objects", "-q", filepath.Join(w.GitDir, "objects/pack/pack"))
		w.git("prune-packed")
	}
	look := w.Inspect(t.Context())
	defer look.Close()
	look.stores = []*store{openStore(filepath.Join(w.GitDir, "objects"), "sha1")}
	if head, size, err := look.Blob(t.Context(), large, 5); string(head) != "large" || size <= storeLimit || err != nil {
		t.Errorf("an inspector: %q of %d bytes, %v", head, size, err)
	}
}

// A long chain of large deltas, each of which is small when compressed, is left to git, too.
func TestStoreIsBoundedByDeltas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const size, links = storeLimit / 2, 8
	var b bytes.Buffer
	b.WriteString("PACK")
	check(t, binary.Write(&b, binary.BigEndian, [2]uint32{2, links + 1}))
	entry := func(kind int, distance int, content []byte) {
		n := len(content)
		head := byte(kind<<4 | n&15)
		for n >>= 4; n > 0; n >>= 7 {
			b.WriteByte(head | 0x80)
			head = byte(n & 0x7f)
		}
		b.WriteByte(head)
		if kind == ofsDelta {
			coded := []byte{byte(distance & 0x7f)}
			for distance >>= 7; distance > 0; distance >>= 7 {
				distance--
				coded = append([]byte{0x80 | byte(distance&0x7f)}, coded...)
			}
			b.Write(coded)
		}
		z := zlib.NewWriter(&b)
		_, _ = z.Write(content)
		check(t, z.Close())
	}
	before := b.Len()
	entry(3, 0, []byte("x"))
	was := 1
	var last OID
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
		entry(ofsDelta, at-before, delta)
		before, was, last = at, size+1, HashObject("sha1", "blob", content)
	}
	sum := sha1.Sum(b.Bytes())
	b.Write(sum[:])
	input(t, w.Top, nil, b.String(), "index-pack", "--stdin", "--strict")
	s := openStore(filepath.Join(w.GitDir, "objects"), "sha1")
	defer s.close()
	if _, err := s.read(last); !errors.Is(err, errNotHere) {
		t.Errorf("%v", err)
	}
	if kind, n, err := s.info(last); kind != "blob" || n != size+1 || err != nil {
		t.Errorf("%s of %d bytes, %v", kind, n, err)
	}
	look := w.Inspect(t.Context())
	defer look.Close()
	look.stores = []*store{s}
	if head, n, err := look.Blob(t.Context(), last, 3); len(head) != 3 || n != size+1 || err != nil {
		t.Errorf("an inspector: %q of %d bytes, %v", head, n, err)
	}
}

// A damaged pack is never read to something else, and never ends the program.
func TestStoreOfDamagedPacks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := randomText(1, 3<<10)
	for n := range 8 {
		w.commit(files{"big": text[:n*100] + fmt.Sprint(n) + text[n*100:]})
	}
	w.git("repack", "-a", "-d", "-k", "-q", "-f")
	w.git("prune-packed")
	want := objectsOf(t, w)
	idx, err := filepath.Glob(filepath.Join(w.GitDir, "objects/pack/*.idx"))
	check(t, err)
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		dir := t.TempDir()
		check(t, os.Mkdir(filepath.Join(dir, "pack"), 0o755))
		for i, name := range []string{idx[0], strings.TrimSuffix(idx[0], "idx") + "pack"} {
			content, err := os.ReadFile(name)
			check(t, err)
			if i == n%2 {
				content[r.IntN(len(content))] ^= byte(1 << r.IntN(8))
				content = content[:len(content)-r.IntN(2)*r.IntN(len(content))]
			}
			check(t, os.WriteFile(filepath.Join(dir, "pack", filepath.Base(name)), content, 0o644))
		}
		s := openStore(dir, "sha1")
		for id, o := range want {
			got, err := s.read(id)
			if err == nil && n%2 == 1 && HashObject("sha1", got.kind, got.content) != id && len(got.content) == len(o.content) {
				t.Logf("%s is %q", id, got.content) // the checksum of a delta's base cannot tell
			}
			_, _, _ = s.info(id)
		}
		s.close()
	}
}

func FuzzApplyDelta(f *testing.F) {
	f.Add([]byte("0123456789"), []byte("\x0a\x05\x90\x05"))
	f.Add([]byte("0123456789"), []byte("\x0a\x03\x03abc"))
	f.Add([]byte("0123456789"), []byte("\x0a\xff\xff\xff\xff\x0f\xff\x01\x02"))
	f.Fuzz(func(t *testing.T, base, delta []byte) {
		const most = 1 << 20
		out, err := applyDelta(base, delta, most)
		if err == nil && len(out) > most {
			t.Errorf("%d bytes", len(out))
		}
	})
}
