package land

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
	"github.com/git-airlock/git-airlock/words"
)

func TestLandWritesWhatACheckoutWrites(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ old, new gitopstest.Files }{
		"add":                  {gitopstest.Files{"a": "1\n"}, gitopstest.Files{"b": "2\n", "d/e/f": "3\n"}},
		"modify":               {gitopstest.Files{"a": "1\n", "b": "x"}, gitopstest.Files{"a": "2\n"}},
		"remove":               {gitopstest.Files{"a": "1\n", "d/e/f": "3\n", "keep": "k"}, gitopstest.Files{"a": gitopstest.Absent, "d/e/f": gitopstest.Absent}},
		"remove all":           {gitopstest.Files{"a": "1\n"}, gitopstest.Files{"a": gitopstest.Absent}},
		"empty file":           {gitopstest.Files{"a": "1\n"}, gitopstest.Files{"a": "", "b": ""}},
		"make executable":      {gitopstest.Files{"a": "1\n"}, gitopstest.Files{"a": gitopstest.Execute + "1\n"}},
		"make plain":           {gitopstest.Files{"a": gitopstest.Execute + "1\n"}, gitopstest.Files{"a": "1\n"}},
		"file to link":         {gitopstest.Files{"a": "1\n", "b": "2"}, gitopstest.Files{"a": gitopstest.LinkTo + "b"}},
		"link to file":         {gitopstest.Files{"a": gitopstest.LinkTo + "b", "b": "2"}, gitopstest.Files{"a": "1\n"}},
		"retarget link":        {gitopstest.Files{"a": gitopstest.LinkTo + "b"}, gitopstest.Files{"a": gitopstest.LinkTo + "c"}},
		"dangling link":        {gitopstest.Files{"b": "2"}, gitopstest.Files{"a": gitopstest.LinkTo + "nowhere", "l": gitopstest.LinkTo + "/nonexistent/x"}},
		"file to folder":       {gitopstest.Files{"a": "1\n"}, gitopstest.Files{"a": gitopstest.Absent, "a/b": "2", "a/c/d": "3"}},
		"folder to file":       {gitopstest.Files{"a/b": "2", "a/c/d": "3"}, gitopstest.Files{"a/b": gitopstest.Absent, "a/c/d": gitopstest.Absent, "a": "1\n"}},
		"link to folder":       {gitopstest.Files{"a": gitopstest.LinkTo + "b", "b/x": "2"}, gitopstest.Files{"a": gitopstest.Absent, "a/x": "1", "a/y": "2"}},
		"folder to link":       {gitopstest.Files{"a/x": "1", "b/x": "2"}, gitopstest.Files{"a/x": gitopstest.Absent, "a": gitopstest.LinkTo + "b"}},
		"rename":               {gitopstest.Files{"a": "1\n2\n3\n"}, gitopstest.Files{"a": gitopstest.Absent, "b": "1\n2\n3\n"}},
		"binary":               {gitopstest.Files{"a": "\x00\x01\xff"}, gitopstest.Files{"a": "\xff\x00\r\n\x00"}},
		"no newline at end":    {gitopstest.Files{"a": "1\n"}, gitopstest.Files{"a": "1"}},
		"CRLF bytes":           {gitopstest.Files{"a": "1\r\n"}, gitopstest.Files{"a": "1\r\n2\r\n"}},
		"odd names":            {gitopstest.Files{"a": "1"}, gitopstest.Files{" ": "1", "a b": "2", `q"'\`: "3", "new\nline": "4", "tab\t": "5", "ü/é": "6", "\xff\xfe": "7", "-f": "8", "--": "9"}},
		"odd names changed":    {gitopstest.Files{"new\nline": "1", "ü": "2", `"x"`: "3", " lead": "4"}, gitopstest.Files{"new\nline": "a", "ü": gitopstest.Absent, `"x"`: "b", " lead": "c"}},
		"glob characters":      {gitopstest.Files{"*": "1", "[a]": "2", "a": "3", "?": "4", ":(top)x": "5"}, gitopstest.Files{"*": "x", "[a]": "y", ":(top)x": "z", ":!b": "w"}},
		"long name":            {gitopstest.Files{"a": "1"}, gitopstest.Files{strings.Repeat("n", 255): "1", strings.Repeat("d/", 60) + "f": "2"}},
		"nothing":              {gitopstest.Files{"a": "1"}, gitopstest.Files{}},
		"empty folders remain": {gitopstest.Files{"d/a": "1", "d/b": "1"}, gitopstest.Files{"d/a": gitopstest.Absent}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			old := w.CommitAll(c.old)
			new := w.Built(old, c.new)
			w.land(old, new)
			w.likeCheckout(new)
		})
	}
}

// likeCheckout checks that the working tree is byte for byte a fresh checkout of a commit.
func (w *world) likeCheckout(commit gitops.OID) {
	w.T.Helper()
	fresh := filepath.Join(w.T.TempDir(), "fresh")
	w.Run("worktree", "add", "-q", "--detach", fresh, string(commit))
	want := (&world{&gitopstest.Repo{T: w.T, Repository: &gitops.Repository{Top: fresh}}}).tree()
	delete(want, ".git")
	got := w.tree()
	delete(got, ".git")
	got.equals(w.T, want)
	w.Run("worktree", "remove", "--force", fresh)
}

func TestLandLarge(t *testing.T) {
	t.Parallel()
	for _, n := range []int{101, 6000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			first, second := gitopstest.Files{"keep": "k"}, gitopstest.Files{}
			for i := range n {
				name := fmt.Sprintf("d%d/f%d", i%97, i)
				switch i % 3 {
				case 0:
					first[name], second[name] = "1", fmt.Sprint(i)
				case 1:
					first[name], second[name] = "1", gitopstest.Absent
				default:
					second[name] = fmt.Sprint("new", i)
				}
			}
			old := w.CommitAll(first)
			new := w.Built(old, second)
			w.land(old, new)
			w.likeCheckout(new)
		})
	}
}

func TestLandConverts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config   [][2]string
		old, new gitopstest.Files
	}{
		"autocrlf":            {[][2]string{{"core.autocrlf", "true"}}, gitopstest.Files{"a": "1\n"}, gitopstest.Files{"a": "1\n2\n", "b": "x\n"}},
		"eol attribute":       {nil, gitopstest.Files{".gitattributes": "*.txt text eol=crlf\n", "a.txt": "1\n"}, gitopstest.Files{"a.txt": "2\n", "b.txt": "3\n"}},
		"attributes change":   {nil, gitopstest.Files{"a.txt": "1\n"}, gitopstest.Files{".gitattributes": "*.txt text eol=crlf\n", "a.txt": "2\n", "b.txt": "3\n"}},
		"attributes go":       {nil, gitopstest.Files{".gitattributes": "*.txt text eol=crlf\n", "a.txt": "1\n"}, gitopstest.Files{".gitattributes": gitopstest.Absent, "a.txt": "2\n"}},
		"nested attributes":   {nil, gitopstest.Files{"d/a.txt": "1\n"}, gitopstest.Files{"d/.gitattributes": "*.txt text eol=crlf\n", "d/a.txt": "2\n", "a.txt": "3\n"}},
		"ident":               {nil, gitopstest.Files{".gitattributes": "* ident\n"}, gitopstest.Files{"a": "$Id$\n"}},
		"working encoding":    {nil, gitopstest.Files{".gitattributes": "*.txt working-tree-encoding=UTF-16LE\n"}, gitopstest.Files{"a.txt": "ü\n"}},
		"smudge":              {[][2]string{{"filter.up.smudge", "tr a-z A-Z"}, {"filter.up.clean", "tr A-Z a-z"}}, gitopstest.Files{".gitattributes": "*.up filter=up\n", "a.up": "abc\n"}, gitopstest.Files{"a.up": "def\n", "b.up": "x\n"}},
		"smudge with %f":      {[][2]string{{"filter.n.smudge", "sed s,@name@,%f,"}, {"filter.n.clean", "sed s,%f,@name@,"}}, gitopstest.Files{".gitattributes": "*.n filter=n\n", "s": ""}, gitopstest.Files{"d/a b.n": "is @name@\n"}},
		"smudge in the tree":  {[][2]string{{"filter.up.smudge", "./tools/up"}, {"filter.up.clean", "tr A-Z a-z"}, {"filter.up.required", "true"}}, gitopstest.Files{"tools/up": gitopstest.Execute + "#!/bin/sh\ntr a-z A-Z\n", ".gitattributes": "*.up filter=up\n"}, gitopstest.Files{"a.up": "def\n"}},
		"upper-case filter":   {[][2]string{{"filter.UP.smudge", "tr a-z A-Z"}, {"filter.UP.clean", "tr A-Z a-z"}}, gitopstest.Files{".gitattributes": "*.up filter=UP\n"}, gitopstest.Files{"a.up": "def\n"}},
		"no file mode":        {[][2]string{{"core.fileMode", "false"}}, gitopstest.Files{"a": "1"}, gitopstest.Files{"a": gitopstest.Execute + "2", "b": gitopstest.Execute + "3"}},
		"no symbolic links":   {[][2]string{{"core.symlinks", "false"}}, gitopstest.Files{"a": "1"}, gitopstest.Files{"l": gitopstest.LinkTo + "a"}},
		"index version 4":     {[][2]string{{"index.version", "4"}}, gitopstest.Files{"a/b": "1", "a/c": "2"}, gitopstest.Files{"a/b": "3", "a/d": "4"}},
		"untracked cache":     {[][2]string{{"core.untrackedCache", "true"}}, gitopstest.Files{"a/b": "1"}, gitopstest.Files{"a/b": "2", "n/o": "3"}},
		"split index":         {[][2]string{{"core.splitIndex", "true"}, {"splitIndex.maxPercentChange", "100"}}, gitopstest.Files{"a": "1", "b": "1", "c": "1"}, gitopstest.Files{"a": "2", "d": "3"}},
		"checkout in threads": {[][2]string{{"checkout.workers", "4"}, {"checkout.thresholdForParallelism", "1"}}, gitopstest.Files{"a": "1"}, gitopstest.Files{"b": "1", "c": "2", "d/e": "3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for _, kv := range c.config {
				w.Run("config", kv[0], kv[1])
			}
			old := w.CommitAll(c.old)
			w.Run("reset", "-q", "--hard")
			new := w.Built(old, c.new)
			w.land(old, new)
			if name == "smudge in the tree" { // git itself cannot check that out afresh: the tool comes later than the file
				if content, _ := os.ReadFile(filepath.Join(w.Top, "a.up")); string(content) != "DEF\n" {
					t.Errorf("a.up is %q", content)
				}
				return
			}
			w.likeCheckout(new)
		})
	}
}

func TestLandIntoOtherShapes(t *testing.T) {
	t.Parallel()
	t.Run("sha256", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "--object-format=sha256")
		old := w.CommitAll(gitopstest.Files{"a": "1", "b": "2"})
		new := w.Built(old, gitopstest.Files{"a": gitopstest.Absent, "c": "3", "b": "4"})
		w.land(old, new)
		w.likeCheckout(new)
	})
	t.Run("linked worktree", func(t *testing.T) {
		t.Parallel()
		main := newWorld(t)
		old := main.CommitAll(gitopstest.Files{"a": "1", "b": "2"})
		main.Run("checkout", "-q", "-b", "other")
		before := main.picture()
		top := filepath.Join(t.TempDir(), "linked tree")
		main.Run("worktree", "add", "-q", top, "main")
		w := openWorld(t, top)
		new := w.Built(old, gitopstest.Files{"a": gitopstest.Absent, "c/d": "3"})
		w.land(old, new)
		w.likeCheckout(new)
		after := main.picture()
		delete(after, "[refs]")
		delete(before, "[refs]")
		after.equals(t, before)
	})
	t.Run("submodule", func(t *testing.T) {
		t.Parallel()
		sub, super := newWorld(t), newWorld(t)
		sub.CommitAll(gitopstest.Files{"a": "1"})
		super.CommitAll(gitopstest.Files{"x": "1"})
		super.Run("-c", "protocol.file.allow=always", "submodule", "add", "-q", sub.Top, "sub")
		w := openWorld(t, filepath.Join(super.Top, "sub"))
		old := gitops.OID(w.Run("rev-parse", "HEAD"))
		w.Run("checkout", "-q", "main")
		new := w.Built(old, gitopstest.Files{"a": "2", "b/c": "3"})
		w.land(old, new)
		if content, err := os.ReadFile(filepath.Join(super.Top, "sub/b/c")); err != nil || string(content) != "3" {
			t.Errorf("sub/b/c is %q, %v", content, err)
		}
	})
	t.Run("sparse checkout", func(t *testing.T) {
		t.Parallel()
		for _, mode := range [][]string{{"--cone"}, {"--cone", "--sparse-index"}, {"--no-cone"}} {
			w := newWorld(t)
			old := w.CommitAll(gitopstest.Files{"top": "1", "in/a": "1", "out/a": "1", "out/b": "1"})
			w.Run(append(append([]string{"sparse-checkout", "set"}, mode...), "in")...)
			new := w.Built(old, gitopstest.Files{"in/a": "2", "in/b": "2", "out/a": "2", "out/b": gitopstest.Absent, "out/c": "2", "far/x": "2"})
			w.land(old, new)
			for name, want := range map[string]bool{"in/a": true, "in/b": true, "out/a": false, "out/c": false, "far/x": false} {
				if _, err := os.Lstat(filepath.Join(w.Top, name)); (err == nil) != want {
					t.Errorf("%v: %s is there: %v, want %v", mode, name, err == nil, want)
				}
			}
		}
	})
	t.Run("file outside the sparse checkout", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		old := w.CommitAll(gitopstest.Files{"in/a": "1", "out/a": "1"})
		w.Run("sparse-checkout", "set", "--cone", "in")
		w.Write(gitopstest.Files{"out/a": "1"}) // put there by hand, as it was
		new := w.Built(old, gitopstest.Files{"out/a": "2"})
		rest()
		w.land(old, new)
		if content, _ := os.ReadFile(filepath.Join(w.Top, "out/a")); string(content) != "2" {
			t.Errorf("out/a is %q: git takes it for checked out and would show a change", content)
		}
	})
	t.Run("without an index", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		old := w.CommitAll(gitopstest.Files{})
		gitopstest.Check(t, os.Remove(filepath.Join(w.GitDir, "index")))
		w.land(old, w.Built(old, gitopstest.Files{"a": "1"}))
	})
	t.Run("folder with percent and quote", func(t *testing.T) {
		t.Parallel()
		top := filepath.Join(t.TempDir(), "a %f %% 'q' [x]*")
		gitopstest.Command(t, "", nil, "init", "-q", "-b", "main", top)
		w := openWorld(t, top)
		w.Run("config", "filter.up.smudge", "cat - ./suffix")
		w.Run("config", "filter.up.clean", "head -n 1")
		old := w.CommitAll(gitopstest.Files{".gitattributes": "*.up filter=up\n", "suffix": "end\n"})
		new := w.Built(old, gitopstest.Files{"a.up": "abc\n"})
		w.land(old, new)
		if content, _ := os.ReadFile(filepath.Join(top, "a.up")); string(content) != "abc\nend\n" {
			t.Errorf("a.up is %q", content)
		}
	})
}

func TestLandKeepsWorkInProgress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.CommitAll(gitopstest.Files{"a": "1", "staged": "1", "unstaged": "1", "both": "1", "gone": "1", "d/x": "1", "rm": "1", ".gitignore": "*.log\n"})
	w.Write(gitopstest.Files{"staged": "2", "both": "2", "added": "new", "rm": gitopstest.Absent})
	w.Run("add", "staged", "both", "added", "rm")
	w.Write(gitopstest.Files{"unstaged": "3", "both": "3", "gone": gitopstest.Absent, "untracked": "u", "d/new": "u", "x.log": "ignored", "meant": "to be added"})
	w.Run("add", "-N", "meant")
	w.Run("update-index", "--chmod=+x", "staged")
	before, status := w.tree(), w.Run("status", "--porcelain")
	new := w.Built(old, gitopstest.Files{"a": "2", "d/x": "2", "d/y": "3", "n/m": "4"})
	rest()
	if err := Land(t.Context(), w.Repository, w.landing(old, new)); err != nil {
		t.Fatal(err)
	}
	w.landed(new)
	if got := w.Run("status", "--porcelain"); got != status {
		t.Errorf("git status says\n%s\nwant\n%s", got, status)
	}
	after := w.tree()
	for _, name := range []string{"a", "d/x", "d/y", "n/m"} {
		delete(after, name)
		delete(before, name)
	}
	after.equals(t, before)
	if got := w.Run("show", ":both"); got != "2" {
		t.Errorf("staged content is %q, want 2", got)
	}
}

// A change of the user within the second in which the index was written can be recognised only by its content.
func TestLandKeepsRecentEditsVisible(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Run("config", "core.trustctime", "false")
	old := w.CommitAll(gitopstest.Files{"a": "1", "mine": "1"})
	then := time.Now().Add(-time.Minute).Truncate(time.Second)
	in := func(names ...string) {
		for _, name := range names {
			gitopstest.Check(t, os.Chtimes(filepath.Join(w.Top, name), then, then))
		}
	}
	in("mine")
	w.Run("update-index", "--refresh")
	in(".git/index")
	w.Write(gitopstest.Files{"mine": "2"})
	in("mine")
	if got := w.Run("status", "--porcelain"); got != " M mine" {
		t.Fatalf("before: %q", got)
	}
	for _, f := range []gitopstest.Files{{"a": "2"}, {"b": "1"}, {"a": gitopstest.Absent}} {
		new := w.Built(old, f)
		rest()
		gitopstest.Check(t, Land(t.Context(), w.Repository, w.landing(old, new)))
		if got := w.Run("status", "--porcelain"); got != " M mine" {
			t.Fatalf("after %v: %q", f, got)
		}
		old = new
	}
	var collision *CollisionError
	if err := Land(t.Context(), w.Repository, w.landing(old, w.Built(old, gitopstest.Files{"mine": "3"}))); !errors.As(err, &collision) {
		t.Errorf("over the edit: %v, want a collision", err)
	}
}

// Nothing below a symbolic link of the user is removed, nor the link, whichever paths have the skip-worktree bit.
func TestLandRemovesNothingBelowALink(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--assume-unchanged", "--skip-worktree"} {
		w := newWorld(t)
		old := w.CommitAll(gitopstest.Files{"d/f": "1", "a": "1"})
		w.Run("update-index", flag, "d/f")
		elsewhere := filepath.Join(w.State, "elsewhere")
		gitopstest.Check(t, os.Rename(filepath.Join(w.Top, "d"), elsewhere))
		gitopstest.Check(t, os.Symlink(elsewhere, filepath.Join(w.Top, "d")))
		rest()
		gitopstest.Check(t, Land(t.Context(), w.Repository, w.landing(old, w.Built(old, gitopstest.Files{"d/f": gitopstest.Absent}))))
		if content, err := os.ReadFile(filepath.Join(w.Top, "d", "f")); string(content) != "1" {
			t.Errorf("%s: %q, %v", flag, content, err)
		}
	}
}

// Attribute files that exist only in the work tree apply to landed files as they do in a checkout.
func TestLandObeysUntrackedAttributes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.CommitAll(gitopstest.Files{"a.txt": "1\n"})
	gitopstest.Check(t, os.WriteFile(filepath.Join(w.GitDir, "info", "exclude"), []byte(".gitattributes\n"), 0o644))
	w.Write(gitopstest.Files{".gitattributes": "*.txt text eol=crlf\n", "d/.gitattributes": "*.md text eol=crlf\n"})
	rest()
	w.land(old, w.Built(old, gitopstest.Files{"a.txt": "2\n", "d/b.txt": "3\n", "d/c.md": "4\n"}))
	for name, want := range map[string]string{"a.txt": "2\r\n", "d/b.txt": "3\r\n", "d/c.md": "4\r\n", "d/.gitattributes": "*.md text eol=crlf\n"} {
		if content, err := os.ReadFile(filepath.Join(w.Top, name)); string(content) != want {
			t.Errorf("%s is %q, %v, want %q", name, content, err, want)
		}
	}
}

// The same holds for more attribute files than git is asked about one by one.
func TestLandObeysManyUntrackedAttributes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.CommitAll(gitopstest.Files{"a": "1", ".gitignore": ".gitattributes\n"})
	mine, brought := gitopstest.Files{}, gitopstest.Files{}
	for n := range gitops.PathspecLimit + 1 {
		mine[fmt.Sprintf("d%d/.gitattributes", n)] = "*.txt text eol=crlf\n"
		brought[fmt.Sprintf("d%d/a.txt", n)] = "1\n"
	}
	w.Write(mine)
	rest()
	w.land(old, w.Built(old, brought))
	for name := range brought {
		if content, err := os.ReadFile(filepath.Join(w.Top, name)); string(content) != "1\r\n" {
			t.Fatalf("%s is %q, %v", name, content, err)
		}
	}
}

// The modification time of a file is the time of its landing, so that build tools see it as newer than earlier
// results. The index keeps its mode, and is shared as git would share it.
func TestLandTouches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	built := filepath.Join(w.State, "built")
	w.Run("config", "core.sharedRepository", "group")
	w.Run("config", "filter.slow.smudge", "sleep .1; touch "+built+"; cat")
	old := w.CommitAll(gitopstest.Files{".gitattributes": "z filter=slow\n", "a": "1"})
	gitopstest.Check(t, os.Chmod(filepath.Join(w.GitDir, "index"), 0o604))
	rest()
	w.land(old, w.Built(old, gitopstest.Files{"a": "2", "z": "1"}))
	a, err := os.Stat(filepath.Join(w.Top, "a"))
	gitopstest.Check(t, err)
	b, err := os.Stat(built)
	gitopstest.Check(t, err)
	if a.ModTime().Before(b.ModTime()) {
		t.Errorf("what landed is of %s, what was built before of %s", a.ModTime(), b.ModTime())
	}
	if index, err := os.Stat(filepath.Join(w.GitDir, "index")); err != nil || index.Mode().Perm() != 0o664 {
		t.Errorf("the index: %v, %v", index.Mode(), err)
	}
}

func TestLandRunsNoHook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.CommitAll(gitopstest.Files{"a": "1", ".husky/post-checkout": gitopstest.Execute + "#!/bin/sh\n"})
	hooks := filepath.Join(w.Top, ".hooks")
	canary := filepath.Join(t.TempDir(), "canary")
	for _, hook := range []string{"reference-transaction", "post-checkout", "post-index-change", "post-merge", "post-commit", "pre-commit", "post-rewrite", "update"} {
		for _, dir := range []string{hooks, filepath.Join(w.GitDir, "hooks")} {
			gitopstest.Check(t, os.MkdirAll(dir, 0o755))
			gitopstest.Check(t, os.WriteFile(filepath.Join(dir, hook), []byte("#!/bin/sh\necho "+hook+" >> "+words.ShellQuote(canary)+"\n"), 0o755))
		}
	}
	gitopstest.Check(t, os.WriteFile(filepath.Join(w.GitDir, "info/exclude"), []byte(".hooks\n"), 0o644))
	w.Run("config", "core.fsmonitor", "echo fsmonitor >> "+words.ShellQuote(canary)+"; false")
	for _, hooksPath := range []string{"", hooks, ".hooks"} {
		new := w.Built(old, gitopstest.Files{"a": "2" + hooksPath, "b" + hooksPath: "1"})
		if hooksPath != "" {
			w.Run("config", "core.hooksPath", hooksPath)
		}
		_ = os.Remove(canary)
		rest()
		if err := Land(t.Context(), w.Repository, w.landing(old, new)); err != nil {
			t.Fatal(err)
		}
		if content, err := os.ReadFile(canary); err == nil {
			t.Errorf("hooksPath %q: run: %s", hooksPath, content)
		}
		old = new
	}
	w.Run("update-ref", "refs/heads/x", "HEAD")
	if _, err := os.Stat(canary); err != nil {
		t.Error("the hooks of this test do not work:", err)
	}
}

// Hooks, aliases and "git rebase --exec" run this program with git's variables for another repository.
func TestOpenScrubsTheCallersVariables(t *testing.T) {
	w := newWorld(t)
	other := newWorld(t)
	old := w.CommitAll(gitopstest.Files{"a": "1"})
	other.CommitAll(gitopstest.Files{"b": "1"})
	before := other.picture()
	new := w.Built(old, gitopstest.Files{"a": "2"})
	landing := w.landing(old, new)
	for name, value := range map[string]string{
		"GIT_DIR": other.GitDir, "GIT_WORK_TREE": other.Top, "GIT_INDEX_FILE": filepath.Join(other.GitDir, "index"),
		"GIT_OBJECT_DIRECTORY": filepath.Join(other.GitDir, "objects"), "GIT_COMMON_DIR": other.GitDir, "GIT_NAMESPACE": "x", "GIT_PREFIX": "x/",
		"GIT_TRACE": filepath.Join(other.State, "trace"), "GIT_EXTERNAL_DIFF": "false", "GIT_GLOB_PATHSPECS": "1", "GIT_DEFAULT_HASH": "sha256",
		"GIT_REFLOG_ACTION": "x", "GIT_ALTERNATE_OBJECT_DIRECTORIES": "/x", "GIT_REPLACE_REF_BASE": "refs/x/", "LC_ALL": "C.UTF-8",
	} {
		t.Setenv(name, value)
	}
	r, err := gitops.Open(t.Context(), w.Top)
	gitopstest.Check(t, err)
	if r.Top != w.Top || r.GitDir != w.GitDir {
		t.Fatalf("opened %+v", r)
	}
	if head, err := r.Head(t.Context()); err != nil || head.Commit != old {
		t.Errorf("Head: %+v, %v", head, err)
	}
	gitopstest.Check(t, Land(t.Context(), r, landing))
	for name := range map[string]bool{"GIT_DIR": true, "GIT_WORK_TREE": true, "GIT_INDEX_FILE": true, "GIT_OBJECT_DIRECTORY": true, "GIT_COMMON_DIR": true,
		"GIT_NAMESPACE": true, "GIT_TRACE": true, "GIT_GLOB_PATHSPECS": true, "GIT_ALTERNATE_OBJECT_DIRECTORIES": true, "GIT_REPLACE_REF_BASE": true, "GIT_DEFAULT_HASH": true} {
		gitopstest.Check(t, os.Unsetenv(name))
	}
	if _, err := os.Stat(filepath.Join(other.State, "trace")); err == nil {
		t.Error("git traced")
	}
	w.landed(new)
	other.picture().equals(t, before)
}

// A .gitmodules file cannot hide a submodule from our checks.
func TestDiffShowsSubmodules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.CommitAll(gitopstest.Files{"a": "1", ".gitmodules": "[submodule \"s\"]\n\tpath = s\n\turl = ./s\n\tignore = all\n"})
	w.Run("config", "diff.ignoreSubmodules", "all")
	w.Run("config", "diff.renames", "copies")
	w.Run("config", "diff.noprefix", "true")
	index := filepath.Join(t.TempDir(), "i")
	env := []string{"GIT_INDEX_FILE=" + index}
	gitopstest.Command(t, w.Top, env, "read-tree", string(old))
	gitopstest.Input(t, w.Top, env, "160000 "+string(old)+"\ts\n100644 "+string(w.Blob("1"))+"\tb\n0 "+string(old.Zero())+"\ta\n", "update-index", "--index-info")
	new := gitops.OID(w.Run("commit-tree", gitopstest.Command(t, w.Top, env, "write-tree"), "-p", string(old), "-m", "m"))
	changes, err := w.Diff(t.Context(), old, new)
	gitopstest.Check(t, err)
	one := gitops.Entry{Mode: gitops.ModeFile, OID: w.Blob("1")}
	want := []gitops.Change{{Path: "a", Old: one}, {Path: "b", New: one}, {Path: "s", New: gitops.Entry{Mode: gitops.ModeGitlink, OID: old}}}
	if len(changes) != 3 || changes[0] != want[0] || changes[1] != want[1] || changes[2] != want[2] {
		t.Errorf("Diff: %v, want %v", changes, want)
	}
	// A landing makes the submodule's folder and leaves what is in it alone.
	w.Run("config", "--unset", "diff.ignoreSubmodules")
	gitopstest.Check(t, Land(t.Context(), w.Repository, w.landing(old, new)))
	if info, err := os.Stat(filepath.Join(w.Top, "s")); err != nil || !info.IsDir() {
		t.Errorf("s: %v, %v", info, err)
	}
	w.landed(new)
}
