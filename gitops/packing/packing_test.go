package packing

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// Git reads exactly the given objects from a pack that we wrote.
func TestPack(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		w := gitopstest.New(t, "--object-format="+format)
		tree := gitops.OID(w.Run("hash-object", "-t", "tree", "-w", "--stdin"))
		var objects []Object
		for _, n := range []int{0, 1, 15, 16, 2047, 2048, 300_000} {
			objects = append(objects, Object{Kind: "commit", Content: gitops.Commit{Tree: tree, Author: "A <a@x> 1 +0000", Committer: "C <c@x> 2 +0000", Message: []byte(strings.Repeat("m", n))}.Bytes()})
		}
		for _, kind := range []string{"blob", "tree"} {
			objects = append(objects, Object{Kind: kind})
		}
		for _, few := range []bool{true, false} {
			gitopstest.Check(t, Store(t.Context(), w.Git, format, objects, few))
			for _, o := range objects {
				if got := w.Run("cat-file", o.Kind, string(gitops.HashObject(format, o.Kind, o.Content))) + "\n"; strings.TrimSuffix(got, "\n") != strings.TrimSuffix(string(o.Content), "\n") {
					t.Errorf("a %s of %d bytes came back as %d", o.Kind, len(o.Content), len(got))
				}
			}
		}
		w.Run("fsck", "--strict", "--no-dangling")
	}
}

// The index of a pack is the one that git index-pack makes. An object with another content than its name says is refused.
func TestIndex(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		w := gitopstest.New(t, "--object-format="+format)
		for _, n := range []int{0, 1, 2, 700} {
			var objects []Object
			var names []gitops.OID
			for i := range n {
				objects = append(objects, Object{Kind: "blob", Content: []byte(strings.Repeat("x", i*i%5000) + strconv.Itoa(i))})
				names = append(names, gitops.HashObject(format, "blob", objects[i].Content))
			}
			pack, at := Pack(format, objects)
			got := Index(format, pack, at, names)
			gitopstest.Check(t, Check(format, objects, names))
			base := filepath.Join(t.TempDir(), "p")
			gitopstest.Check(t, os.WriteFile(base+".pack", pack, 0o600))
			w.Run("index-pack", "--no-rev-index", base+".pack")
			if want, err := os.ReadFile(base + ".idx"); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s, %d objects: the index differs from git's, %v", format, n, err)
			}
			if n == 2 {
				names[0], names[1] = names[1], names[0]
				if Check(format, objects, names) == nil {
					t.Error("an object with another content was accepted")
				}
			}
		}
	}
}

// TestAhead checks that objects that are compressed ahead make the same pack.
func TestAhead(t *testing.T) {
	t.Parallel()
	var plain, ahead []Object
	for i := range 40 {
		o := Object{Kind: "blob", Content: []byte(strings.Repeat("some text ", i*i*20) + strconv.Itoa(i))}
		plain = append(plain, o)
		if i%3 > 0 {
			o = o.Ahead()
		}
		ahead = append(ahead, o)
	}
	want, wantAt := Pack("sha1", plain)
	got, gotAt := Pack("sha1", ahead)
	if !bytes.Equal(got, want) || !slices.Equal(gotAt, wantAt) {
		t.Errorf("%d bytes, %d without", len(got), len(want))
	}
}

// TestKept checks that git reads a kept pack, keeps it while nothing refers to it, and finds nothing of an unfinished one after the release.
func TestKept(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		w := gitopstest.New(t, "--object-format="+format)
		k := KeptPacks{Repo: w.Repository, Mark: "a-mark"}
		content := []byte(strings.Repeat("content ", 1000))
		id := gitops.HashObject(format, "blob", content)
		gitopstest.Check(t, k.Store([]Object{{Kind: "blob", Content: content}, {Kind: "tree"}}, []gitops.OID{id, gitops.HashObject(format, "tree", nil)}))
		w.Run("repack", "-ad")
		w.Run("prune", "--expire=now")
		if got := w.Run("cat-file", "blob", string(id)); got != string(content) {
			t.Errorf("%d bytes", len(got))
		}
		w.Run("fsck", "--strict", "--no-dangling")
		for _, name := range []string{"pack-1.keep", "pack-2.keep"} {
			gitopstest.Check(t, os.WriteFile(filepath.Join(k.folder(), name), []byte(k.Mark+"\n"), 0o600))
		}
		gitopstest.Check(t, os.WriteFile(filepath.Join(k.folder(), "pack-3.keep"), []byte("another\n"), 0o600))
		gitopstest.Check(t, os.WriteFile(filepath.Join(k.folder(), "pack-1.pack"), []byte("PACK"), 0o600))
		gitopstest.Check(t, os.WriteFile(k.half("pack-1"), nil, 0o600))
		gitopstest.Check(t, k.Release())
		var kinds []string
		for _, name := range gitops.Glob(k.folder(), "*") {
			kinds = append(kinds, filepath.Ext(name))
			if info, err := os.Stat(name); err != nil || strings.HasSuffix(name, ".pack") && info.Mode() != 0o444 {
				t.Errorf("%s: %v, %v", name, info.Mode(), err)
			}
		}
		slices.Sort(kinds)
		if !slices.Equal(kinds, []string{".idx", ".keep", ".pack"}) {
			t.Errorf("%v are left", kinds)
		}
	}
}

// TestKeptIsShared checks the permissions of the files in a repository of a group.
func TestKeptIsShared(t *testing.T) {
	t.Parallel()
	w := gitopstest.New(t, "--shared=group")
	config, err := w.Config(t.Context())
	gitopstest.Check(t, err)
	k := KeptPacks{Repo: w.Repository, Sharing: config.Sharing(), Mark: "a-mark"}
	gitopstest.Check(t, k.Store([]Object{{Kind: "tree"}}, []gitops.OID{gitops.HashObject("sha1", "tree", nil)}))
	for _, name := range gitops.Glob(k.folder(), "*") {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm()&0o070 != 0o040 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}
