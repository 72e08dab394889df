package promote_test

import (
	"bytes"
	"compress/zlib"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
)

// file is one file or link, with git's mode.
type file struct{ mode, content string }

const plainMode, executableMode, linkMode = "100644", "100755", "120000"

func plain(content string) file { return file{plainMode, content} }

// write writes the file into a working tree.
func (f file) write(t testing.TB, name string) {
	t.Helper()
	check(t, os.MkdirAll(filepath.Dir(name), 0o755))
	switch f.mode {
	case linkMode:
		check(t, os.Symlink(f.content, name))
	case executableMode:
		check(t, os.WriteFile(name, []byte(f.content), 0o755))
	default:
		check(t, os.WriteFile(name, []byte(f.content), 0o644))
	}
}

// tree maps paths to the files of a commit.
type tree map[string]file

// put sets a file. It removes entries that cannot exist beside it: a file where a folder must be, or a folder's
// content.
func (t tree) put(name string, f file) {
	maps.DeleteFunc(t, func(p string, _ file) bool {
		return strings.HasPrefix(p, name+"/") || strings.HasPrefix(name, p+"/")
	})
	t[name] = f
}

// with returns the tree overlaid with another one.
func (t tree) with(over tree) tree {
	both := maps.Clone(t)
	for name, f := range over {
		if name == shared {
			f = weave(t[name], f)
		}
		both.put(name, f)
	}
	return both
}

// shared is a file that both change, each in its own lines with enough lines between them.
const shared = "shared by both"

// sharedFile returns its initial content.
func sharedFile() file {
	var b strings.Builder
	for i := range 20 {
		fmt.Fprintf(&b, "between %d\nbetween %[1]d, too\n%s %[1]d:\nafter %[1]d\n", i, []string{"agent", "user"}[i%2])
	}
	return plain(b.String())
}

// edit changes one line of an owner in the shared file.
func (f file) edit(r *rand.Rand, whose, to string) file {
	lines := strings.SplitAfter(f.content, "\n")
	var theirs []int
	for i, line := range lines {
		if strings.HasPrefix(line, whose+" ") {
			theirs = append(theirs, i)
		}
	}
	i := one(r, theirs)
	head, _, _ := strings.Cut(lines[i], ":")
	lines[i] = head + ": " + to + "\n"
	return plain(strings.Join(lines, ""))
}

// weave returns the agent's shared file with the user's lines of another version.
func weave(agents, users file) file {
	lines := strings.SplitAfter(agents.content, "\n")
	for i, line := range strings.SplitAfter(users.content, "\n") {
		if strings.HasPrefix(line, "user ") {
			lines[i] = line
		}
	}
	return plain(strings.Join(lines, ""))
}

// readTree reads a working tree without the named folders.
func readTree(t testing.TB, top string, except ...string) tree {
	t.Helper()
	found := tree{}
	check(t, filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(top, name)
		if err != nil || d.IsDir() {
			if slices.Contains(except, rel) {
				return fs.SkipDir
			}
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(name)
			found[rel] = file{linkMode, target}
			return err
		}
		content, err := os.ReadFile(name)
		found[rel] = plain(string(content))
		if info.Mode()&0o100 != 0 {
			found[rel] = file{executableMode, string(content)}
		}
		return err
	}))
	return found
}

// objects stores loose objects in a git directory, a thousand times as fast as git. Without a folder it only computes
// their names.
type objects struct{ dir, format string }

func (o objects) store(t testing.TB, kind, content string) gitops.OID {
	t.Helper()
	id := gitops.HashObject(o.format, kind, []byte(content))
	if o.dir == "" {
		return id
	}
	name := filepath.Join(o.dir, "objects", string(id[:2]), string(id[2:]))
	if _, err := os.Lstat(name); err == nil {
		return id
	}
	var b bytes.Buffer
	z, _ := zlib.NewWriterLevel(&b, zlib.BestSpeed)
	_, _ = z.Write([]byte(kind + " " + strconv.Itoa(len(content)) + "\x00" + content))
	check(t, z.Close())
	check(t, os.MkdirAll(filepath.Dir(name), 0o755))
	check(t, os.WriteFile(name+".part", b.Bytes(), 0o444)) // git may be packing the objects meanwhile
	check(t, os.Rename(name+".part", name))
	return id
}

// tree stores a tree with all its content.
func (o objects) tree(t testing.TB, files tree) gitops.OID {
	t.Helper()
	folders, entries := map[string]tree{}, map[string]string{}
	for name, f := range files {
		folder, rest, nested := strings.Cut(name, "/")
		if !nested {
			entries[name] = f.mode + " " + name + "\x00" + raw(o.store(t, "blob", f.content))
			continue
		}
		if folders[folder] == nil {
			folders[folder] = tree{}
		}
		folders[folder][rest] = f
	}
	for name, below := range folders {
		// git sorts a folder as if its name ended in a slash.
		entries[name+"/"] = "40000 " + name + "\x00" + raw(o.tree(t, below))
	}
	var content strings.Builder
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		content.WriteString(entries[name])
	}
	return o.store(t, "tree", content.String())
}

func raw(id gitops.OID) string {
	b, err := hex.DecodeString(string(id))
	if err != nil {
		panic(err)
	}
	return string(b)
}

// moveRef moves a ref as git does, under its lock.
func moveRef(t testing.TB, gitDir, ref string, to gitops.OID) {
	t.Helper()
	name := filepath.Join(gitDir, ref)
	check(t, os.MkdirAll(filepath.Dir(name), 0o755))
	check(t, os.WriteFile(name+".lock", []byte(to+"\n"), 0o644))
	check(t, os.Rename(name+".lock", name))
}

// words are names of files and folders: odd but legal.
var words = []string{"a", "b", "c", "lib", "sp ace", " lead", "trail ", "ünï", "u\u0308", "-dash", "--", "*", "?", "[a]", ":(top)a", ":!a", `q"uote`, "it's", "$HOME",
	"~", "@{0}", "@", "#", "HEAD", "FETCH_HEAD", "refs", "🎉", "\xff\xfe", "index", ".hidden", ".gitkeep", "tab\tx", "new\nline", "\x1b[31m", `back\slash`, "a.lock", "A", "CON",
	"100644", strings.Repeat("long", 40), ".gitattributes.d", "x.orig", "%f", "&&", "|", ";", "`id`", "!", "{", "..a", "...", "'", "\u202e"}

// contents of files, and of links.
var contents = []string{"", "a", "a\n", "no newline", "line\r\nline\r\n", "lone\rcr\r", "mixed\r\nlf\ncr\r", "\x00\x01\xff", "\xef\xbb\xbfbom\n", "\n\n\n", " \t \n",
	"<<<<<<< a\n=======\n>>>>>>> b\n", "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "$Id$\n", "ref: refs/heads/main\n", "gitdir: /nowhere\n",
	strings.Repeat("0123456789abcde\n", 4000), strings.Repeat("x", 70000)}

var targets = []string{"a", "../a", "/etc/hostname", "nowhere", "lib/", ".", "\xff", strings.Repeat("t", 300)}

// change makes a random change.
func (t tree) change(r *rand.Rand) {
	names := slices.Sorted(maps.Keys(t))
	names = slices.DeleteFunc(names, func(name string) bool { return name == shared })
	if len(names) == 0 || r.IntN(3) == 0 {
		t.put(somePath(r), someFile(r))
		return
	}
	name := one(r, names)
	f := t[name]
	switch r.IntN(9) {
	case 0:
		delete(t, name)
	case 1: // renamed, perhaps into a folder with its own name
		delete(t, name)
		t.put(one(r, []string{somePath(r), name + "/" + one(r, words)}), f)
	case 2: // mode only
		if f.mode != linkMode {
			f.mode = one(r, []string{plainMode, executableMode})
			t[name] = f
		}
	case 3: // a file, link or folder replaces another kind
		t.put(name, someFile(r))
	case 4:
		t.put(name+"/"+one(r, words), someFile(r))
	case 5: // a folder becomes a file
		folder, _, _ := strings.Cut(name, "/")
		t.put(folder, someFile(r))
	case 6: // the same content in two places
		t.put(somePath(r), f)
	default:
		if f.mode != linkMode {
			f.content = f.content[:r.IntN(len(f.content)+1)] + one(r, contents)
			t[name] = f
		}
	}
}

func one[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

func somePath(r *rand.Rand) string {
	name := one(r, words)
	for r.IntN(3) == 0 && len(name) < 500 {
		name += "/" + one(r, words)
	}
	return name
}

func someFile(r *rand.Rand) file {
	if r.IntN(6) == 0 {
		return file{linkMode, one(r, targets)}
	}
	return file{one(r, []string{plainMode, plainMode, executableMode}), one(r, contents)}
}
