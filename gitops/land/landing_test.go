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
)

func TestLandWritesWhatACheckoutWrites(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ old, new files }{
		"add":                  {files{"a": "1\n"}, files{"b": "2\n", "d/e/f": "3\n"}},
		"modify":               {files{"a": "1\n", "b": "x"}, files{"a": "2\n"}},
		"remove":               {files{"a": "1\n", "d/e/f": "3\n", "keep": "k"}, files{"a": absent, "d/e/f": absent}},
		"remove all":           {files{"a": "1\n"}, files{"a": absent}},
		"empty file":           {files{"a": "1\n"}, files{"a": "", "b": ""}},
		"make executable":      {files{"a": "1\n"}, files{"a": execute + "1\n"}},
		"make plain":           {files{"a": execute + "1\n"}, files{"a": "1\n"}},
		"file to link":         {files{"a": "1\n", "b": "2"}, files{"a": linkTo + "b"}},
		"link to file":         {files{"a": linkTo + "b", "b": "2"}, files{"a": "1\n"}},
		"retarget link":        {files{"a": linkTo + "b"}, files{"a": linkTo + "c"}},
		"dangling link":        {files{"b": "2"}, files{"a": linkTo + "nowhere", "l": linkTo + "/nonexistent/x"}},
		"file to folder":       {files{"a": "1\n"}, files{"a": absent, "a/b": "2", "a/c/d": "3"}},
		"folder to file":       {files{"a/b": "2", "a/c/d": "3"}, files{"a/b": absent, "a/c/d": absent, "a": "1\n"}},
		"link to folder":       {files{"a": linkTo + "b", "b/x": "2"}, files{"a": absent, "a/x": "1", "a/y": "2"}},
		"folder to link":       {files{"a/x": "1", "b/x": "2"}, files{"a/x": absent, "a": linkTo + "b"}},
		"rename":               {files{"a": "1\n2\n3\n"}, files{"a": absent, "b": "1\n2\n3\n"}},
		"binary":               {files{"a": "\x00\x01\xff"}, files{"a": "\xff\x00\r\n\x00"}},
		"no newline at end":    {files{"a": "1\n"}, files{"a": "1"}},
		"CRLF bytes":           {files{"a": "1\r\n"}, files{"a": "1\r\n2\r\n"}},
		"odd names":            {files{"a": "1"}, files{" ": "1", "a b": "2", `q"'\`: "3", "new\nline": "4", "tab\t": "5", "ü/é": "6", "\xff\xfe": "7", "-f": "8", "--": "9"}},
		"odd names changed":    {files{"new\nline": "1", "ü": "2", `"x"`: "3", " lead": "4"}, files{"new\nline": "a", "ü": absent, `"x"`: "b", " lead": "c"}},
		"glob characters":      {files{"*": "1", "[a]": "2", "a": "3", "?": "4", ":(top)x": "5"}, files{"*": "x", "[a]": "y", ":(top)x": "z", ":!b": "w"}},
		"long name":            {files{"a": "1"}, files{strings.Repeat("n", 255): "1", strings.Repeat("d/", 60) + "f": "2"}},
		"nothing":              {files{"a": "1"}, files{}},
		"empty folders remain": {files{"d/a": "1", "d/b": "1"}, files{"d/a": absent}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			old := w.commit(c.old)
			new := w.built(old, c.new)
			w.land(old, new)
			w.likeCheckout(new)
		})
	}
}

// likeCheckout demands that the working tree is byte for byte what a fresh checkout of a commit gives.
func (w *world) likeCheckout(commit gitops.OID) {
	w.t.Helper()
	fresh := filepath.Join(w.t.TempDir(), "fresh")
	w.git("worktree", "add", "-q", "--detach", fresh, string(commit))
	want := (&world{t: w.t, Repository: &gitops.Repository{Top: fresh}}).tree()
	delete(want, ".git")
	got := w.tree()
	delete(got, ".git")
	got.equals(w.t, want)
	w.git("worktree", "remove", "--force", fresh)
}

func TestLandLarge(t *testing.T) {
	t.Parallel()
	for _, n := range []int{101, 6000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			first, second := files{"keep": "k"}, files{}
			for i := range n {
				name := fmt.Sprintf("d%d/f%d", i%97, i)
				switch i % 3 {
				case 0:
					first[name], second[name] = "1", fmt.Sprint(i)
				case 1:
					first[name], second[name] = "1", absent
				default:
					second[name] = fmt.Sprint("new", i)
				}
			}
			old := w.commit(first)
			new := w.built(old, second)
			w.land(old, new)
			w.likeCheckout(new)
		})
	}
}

func TestLandConverts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config   [][2]string
		old, new files
	}{
		"autocrlf":            {[][2]string{{"core.autocrlf", "true"}}, files{"a": "1\n"}, files{"a": "1\n2\n", "b": "x\n"}},
		"eol attribute":       {nil, files{".gitattributes": "*.txt text eol=crlf\n", "a.txt": "1\n"}, files{"a.txt": "2\n", "b.txt": "3\n"}},
		"attributes change":   {nil, files{"a.txt": "1\n"}, files{".gitattributes": "*.txt text eol=crlf\n", "a.txt": "2\n", "b.txt": "3\n"}},
		"attributes go":       {nil, files{".gitattributes": "*.txt text eol=crlf\n", "a.txt": "1\n"}, files{".gitattributes": absent, "a.txt": "2\n"}},
		"nested attributes":   {nil, files{"d/a.txt": "1\n"}, files{"d/.gitattributes": "*.txt text eol=crlf\n", "d/a.txt": "2\n", "a.txt": "3\n"}},
		"ident":               {nil, files{".gitattributes": "* ident\n"}, files{"a": "$Id$\n"}},
		"working encoding":    {nil, files{".gitattributes": "*.txt working-tree-encoding=UTF-16LE\n"}, files{"a.txt": "ü\n"}},
		"smudge":              {[][2]string{{"filter.up.smudge", "tr a-z A-Z"}, {"filter.up.clean", "tr A-Z a-z"}}, files{".gitattributes": "*.up filter=up\n", "a.up": "abc\n"}, files{"a.up": "def\n", "b.up": "x\n"}},
		"smudge with %f":      {[][2]string{{"filter.n.smudge", "sed s,@name@,%f,"}, {"filter.n.clean", "sed s,%f,@name@,"}}, files{".gitattributes": "*.n filter=n\n", "s": ""}, files{"d/a b.n": "is @name@\n"}},
		"smudge in the tree":  {[][2]string{{"filter.up.smudge", "./tools/up"}, {"filter.up.clean", "tr A-Z a-z"}, {"filter.up.required", "true"}}, files{"tools/up": execute + "#!/bin/sh\ntr a-z A-Z\n", ".gitattributes": "*.up filter=up\n"}, files{"a.up": "def\n"}},
		"upper-case filter":   {[][2]string{{"filter.UP.smudge", "tr a-z A-Z"}, {"filter.UP.clean", "tr A-Z a-z"}}, files{".gitattributes": "*.up filter=UP\n"}, files{"a.up": "def\n"}},
		"no file mode":        {[][2]string{{"core.fileMode", "false"}}, files{"a": "1"}, files{"a": execute + "2", "b": execute + "3"}},
		"no symbolic links":   {[][2]string{{"core.symlinks", "false"}}, files{"a": "1"}, files{"l": linkTo + "a"}},
		"index version 4":     {[][2]string{{"index.version", "4"}}, files{"a/b": "1", "a/c": "2"}, files{"a/b": "3", "a/d": "4"}},
		"untracked cache":     {[][2]string{{"core.untrackedCache", "true"}}, files{"a/b": "1"}, files{"a/b": "2", "n/o": "3"}},
		"split index":         {[][2]string{{"core.splitIndex", "true"}, {"splitIndex.maxPercentChange", "100"}}, files{"a": "1", "b": "1", "c": "1"}, files{"a": "2", "d": "3"}},
		"checkout in threads": {[][2]string{{"checkout.workers", "4"}, {"checkout.thresholdForParallelism", "1"}}, files{"a": "1"}, files{"b": "1", "c": "2", "d/e": "3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for _, kv := range c.config {
				w.git("config", kv[0], kv[1])
			}
			old := w.commit(c.old)
			w.git("reset", "-q", "--hard")
			new := w.built(old, c.new)
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
		old := w.commit(files{"a": "1", "b": "2"})
		new := w.built(old, files{"a": absent, "c": "3", "b": "4"})
		w.land(old, new)
		w.likeCheckout(new)
	})
	t.Run("linked worktree", func(t *testing.T) {
		t.Parallel()
		main := newWorld(t)
		old := main.commit(files{"a": "1", "b": "2"})
		main.git("checkout", "-q", "-b", "other")
		before := main.picture()
		top := filepath.Join(t.TempDir(), "linked tree")
		main.git("worktree", "add", "-q", top, "main")
		w := openWorld(t, top)
		new := w.built(old, files{"a": absent, "c/d": "3"})
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
		sub.commit(files{"a": "1"})
		super.commit(files{"x": "1"})
		super.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", sub.Top, "sub")
		w := openWorld(t, filepath.Join(super.Top, "sub"))
		old := gitops.OID(w.git("rev-parse", "HEAD"))
		w.git("checkout", "-q", "main")
		new := w.built(old, files{"a": "2", "b/c": "3"})
		w.land(old, new)
		if content, err := os.ReadFile(filepath.Join(super.Top, "sub/b/c")); err != nil || string(content) != "3" {
			t.Errorf("sub/b/c is %q, %v", content, err)
		}
	})
	t.Run("sparse checkout", func(t *testing.T) {
		t.Parallel()
		for _, mode := range [][]string{{"--cone"}, {"--cone", "--sparse-index"}, {"--no-cone"}} {
			w := newWorld(t)
			old := w.commit(files{"top": "1", "in/a": "1", "out/a": "1", "out/b": "1"})
			w.git(append(append([]string{"sparse-checkout", "set"}, mode...), "in")...)
			new := w.built(old, files{"in/a": "2", "in/b": "2", "out/a": "2", "out/b": absent, "out/c": "2", "far/x": "2"})
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
		old := w.commit(files{"in/a": "1", "out/a": "1"})
		w.git("sparse-checkout", "set", "--cone", "in")
		w.write(files{"out/a": "1"}) // put there by hand, as it was
		new := w.built(old, files{"out/a": "2"})
		rest()
		w.land(old, new)
		if content, _ := os.ReadFile(filepath.Join(w.Top, "out/a")); string(content) != "2" {
			t.Errorf("out/a is %q: git takes it for checked out and would show a change", content)
		}
	})
	t.Run("without an index", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		old := w.commit(files{})
		check(t, os.Remove(filepath.Join(w.GitDir, "index")))
		w.land(old, w.built(old, files{"a": "1"}))
	})
	t.Run("folder with percent and quote", func(t *testing.T) {
		t.Parallel()
		top := filepath.Join(t.TempDir(), "a %f %% 'q' [x]*")
		command(t, "", nil, "init", "-q", "-b", "main", top)
		w := openWorld(t, top)
		w.git("config", "filter.up.smudge", "cat - ./suffix")
		w.git("config", "filter.up.clean", "head -n 1")
		old := w.commit(files{".gitattributes": "*.up filter=up\n", "suffix": "end\n"})
		new := w.built(old, files{"a.up": "abc\n"})
		w.land(old, new)
		if content, _ := os.ReadFile(filepath.Join(top, "a.up")); string(content) != "abc\nend\n" {
			t.Errorf("a.up is %q", content)
		}
	})
}

func TestLandKeepsWorkInProgress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.commit(files{"a": "1", "staged": "1", "unstaged": "1", "both": "1", "gone": "1", "d/x": "1", "rm": "1", ".gitignore": "*.log\n"})
	w.write(files{"staged": "2", "both": "2", "added": "new", "rm": absent})
	w.git("add", "staged", "both", "added", "rm")
	w.write(files{"unstaged": "3", "both": "3", "gone": absent, "untracked": "u", "d/new": "u", "x.log": "ignored", "meant": "to be added"})
	w.git("add", "-N", "meant")
	w.git("update-index", "--chmod=+x", "staged")
	before, status := w.tree(), w.git("status", "--porcelain")
	new := w.built(old, files{"a": "2", "d/x": "2", "d/y": "3", "n/m": "4"})
	rest()
	if err := Land(t.Context(), w.Repository, w.landing(old, new)); err != nil {
		t.Fatal(err)
	}
	w.landed(new)
	if got := w.git("status", "--porcelain"); got != status {
		t.Errorf("git status says\n%s\nwant\n%s", got, status)
	}
	after := w.tree()
	for _, name := range []string{"a", "d/x", "d/y", "n/m"} {
		delete(after, name)
		delete(before, name)
	}
	after.equals(t, before)
	if got := w.git("show", ":both"); got != "2" {
		t.Errorf("staged content is %q, want 2", got)
	}
}

// What the user wrote within the second in which the index was written is seen by no more than its content.
func TestLandLeavesYoungEditsInSight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.git("config", "core.trustctime", "false")
	old := w.commit(files{"a": "1", "mine": "1"})
	then := time.Now().Add(-time.Minute).Truncate(time.Second)
	in := func(names ...string) {
		for _, name := range names {
			check(t, os.Chtimes(filepath.Join(w.Top, name), then, then))
		}
	}
	in("mine")
	w.git("update-index", "--refresh")
	in(".git/index")
	w.write(files{"mine": "2"})
	in("mine")
	if got := w.git("status", "--porcelain"); got != " M mine" {
		t.Fatalf("before: %q", got)
	}
	for _, f := range []files{{"a": "2"}, {"b": "1"}, {"a": absent}} {
		new := w.built(old, f)
		rest()
		check(t, Land(t.Context(), w.Repository, w.landing(old, new)))
		if got := w.git("status", "--porcelain"); got != " M mine" {
			t.Fatalf("after %v: %q", f, got)
		}
		old = new
	}
	var collision *CollisionError
	if err := Land(t.Context(), w.Repository, w.landing(old, w.built(old, files{"mine": "3"}))); !errors.As(err, &collision) {
		t.Errorf("over the edit: %v, want a collision", err)
	}
}

// Below a link of the user's nothing is removed, nor the link, whatever git was told not to look at.
func TestLandRemovesNothingBelowALink(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--assume-unchanged", "--skip-worktree"} {
		w := newWorld(t)
		old := w.commit(files{"d/f": "1", "a": "1"})
		w.git("update-index", flag, "d/f")
		elsewhere := filepath.Join(w.dir, "elsewhere")
		check(t, os.Rename(filepath.Join(w.Top, "d"), elsewhere))
		check(t, os.Symlink(elsewhere, filepath.Join(w.Top, "d")))
		rest()
		check(t, Land(t.Context(), w.Repository, w.landing(old, w.built(old, files{"d/f": absent}))))
		if content, err := os.ReadFile(filepath.Join(w.Top, "d", "f")); string(content) != "1" {
			t.Errorf("%s: %q, %v", flag, content, err)
		}
	}
}

// Attribute files that are in the work tree alone hold for what lands as they do for a checkout.
func TestLandObeysUntrackedAttributes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.commit(files{"a.txt": "1\n"})
	check(t, os.WriteFile(filepath.Join(w.GitDir, "info", "exclude"), []byte(".gitattributes\n"), 0o644))
	w.write(files{".gitattributes": "*.txt text eol=crlf\n", "d/.gitattributes": "*.md text eol=crlf\n"})
	rest()
	w.land(old, w.built(old, files{"a.txt": "2\n", "d/b.txt": "3\n", "d/c.md": "4\n"}))
	for name, want := range map[string]string{"a.txt": "2\r\n", "d/b.txt": "3\r\n", "d/c.md": "4\r\n", "d/.gitattributes": "*.md text eol=crlf\n"} {
		if content, err := os.ReadFile(filepath.Join(w.Top, name)); string(content) != want {
			t.Errorf("%s is %q, %v, want %q", name, content, err, want)
		}
	}
}

// So do more of them than git is asked about one by one.
func TestLandObeysManyUntrackedAttributes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.commit(files{"a": "1", ".gitignore": ".gitattributes\n"})
	mine, brought := files{}, files{}
	for n := range gitops.PathspecLimit + 1 {
		mine[fmt.Sprintf("d%d/.gitattributes", n)] = "*.txt text eol=crlf\n"
		brought[fmt.Sprintf("d%d/a.txt", n)] = "1\n"
	}
	w.write(mine)
	rest()
	w.land(old, w.built(old, brought))
	for name := range brought {
		if content, err := os.ReadFile(filepath.Join(w.Top, name)); string(content) != "1\r\n" {
			t.Fatalf("%s is %q, %v", name, content, err)
		}
	}
}

// A file is as young as it comes into sight: what was built meanwhile of the old one is older. The index keeps its mode.
func TestLandTouches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	built := filepath.Join(w.dir, "built")
	w.git("config", "core.sharedRepository", "group")
	w.git("config", "filter.slow.smudge", "sleep .1; touch "+built+"; cat")
	old := w.commit(files{".gitattributes": "z filter=slow\n", "a": "1"})
	check(t, os.Chmod(filepath.Join(w.GitDir, "index"), 0o664))
	rest()
	w.land(old, w.built(old, files{"a": "2", "z": "1"}))
	a, err := os.Stat(filepath.Join(w.Top, "a"))
	check(t, err)
	b, err := os.Stat(built)
	check(t, err)
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
	old := w.commit(files{"a": "1", ".husky/post-checkout": execute + "#!/bin/sh\n"})
	hooks := filepath.Join(w.Top, ".hooks")
	canary := filepath.Join(t.TempDir(), "canary")
	for _, hook := range []string{"reference-transaction", "post-checkout", "post-index-change", "post-merge", "post-commit", "pre-commit", "post-rewrite", "update"} {
		for _, dir := range []string{hooks, filepath.Join(w.GitDir, "hooks")} {
			check(t, os.MkdirAll(dir, 0o755))
			check(t, os.WriteFile(filepath.Join(dir, hook), []byte("#!/bin/sh\necho "+hook+" >> "+gitops.ShellQuote(canary)+"\n"), 0o755))
		}
	}
	check(t, os.WriteFile(filepath.Join(w.GitDir, "info/exclude"), []byte(".hooks\n"), 0o644))
	w.git("config", "core.fsmonitor", "echo fsmonitor >> "+gitops.ShellQuote(canary)+"; false")
	for _, hooksPath := range []string{"", hooks, ".hooks"} {
		new := w.built(old, files{"a": "2" + hooksPath, "b" + hooksPath: "1"})
		if hooksPath != "" {
			w.git("config", "core.hooksPath", hooksPath)
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
	w.git("update-ref", "refs/heads/x", "HEAD")
	if _, err := os.Stat(canary); err != nil {
		t.Error("the hooks of this test do not work:", err)
	}
}

// Hooks, aliases and "git rebase --exec" run us with git's variables set for somebody else.
func TestOpenScrubsTheCallersVariables(t *testing.T) {
	w := newWorld(t)
	other := newWorld(t)
	old := w.commit(files{"a": "1"})
	other.commit(files{"b": "1"})
	before := other.picture()
	new := w.built(old, files{"a": "2"})
	landing := w.landing(old, new)
	for name, value := range map[string]string{
		"GIT_DIR": other.GitDir, "GIT_WORK_TREE": other.Top, "GIT_INDEX_FILE": filepath.Join(other.GitDir, "index"),
		"GIT_OBJECT_DIRECTORY": filepath.Join(other.GitDir, "objects"), "GIT_COMMON_DIR": other.GitDir, "GIT_NAMESPACE": "x", "GIT_PREFIX": "x/",
		"GIT_TRACE": filepath.Join(other.dir, "trace"), "GIT_EXTERNAL_DIFF": "false", "GIT_GLOB_PATHSPECS": "1", "GIT_DEFAULT_HASH": "sha256",
		"GIT_REFLOG_ACTION": "x", "GIT_ALTERNATE_OBJECT_DIRECTORIES": "/x", "GIT_REPLACE_REF_BASE": "refs/x/", "LC_ALL": "C.UTF-8",
	} {
		t.Setenv(name, value)
	}
	r, err := gitops.Open(t.Context(), w.Top)
	check(t, err)
	if r.Top != w.Top || r.GitDir != w.GitDir {
		t.Fatalf("opened %+v", r)
	}
	if head, err := r.Head(t.Context()); err != nil || head.Commit != old {
		t.Errorf("Head: %+v, %v", head, err)
	}
	check(t, Land(t.Context(), r, landing))
	for name := range map[string]bool{"GIT_DIR": true, "GIT_WORK_TREE": true, "GIT_INDEX_FILE": true, "GIT_OBJECT_DIRECTORY": true, "GIT_COMMON_DIR": true,
		"GIT_NAMESPACE": true, "GIT_TRACE": true, "GIT_GLOB_PATHSPECS": true, "GIT_ALTERNATE_OBJECT_DIRECTORIES": true, "GIT_REPLACE_REF_BASE": true, "GIT_DEFAULT_HASH": true} {
		check(t, os.Unsetenv(name))
	}
	if _, err := os.Stat(filepath.Join(other.dir, "trace")); err == nil {
		t.Error("git traced")
	}
	w.landed(new)
	other.picture().equals(t, before)
}

// What .gitmodules says of hiding a submodule hides it from no check of ours.
func TestDiffShowsSubmodules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.commit(files{"a": "1", ".gitmodules": "[submodule \"s\"]\n\tpath = s\n\turl = ./s\n\tignore = all\n"})
	w.git("config", "diff.ignoreSubmodules", "all")
	w.git("config", "diff.renames", "copies")
	w.git("config", "diff.noprefix", "true")
	index := filepath.Join(t.TempDir(), "i")
	env := []string{"GIT_INDEX_FILE=" + index}
	command(t, w.Top, env, "read-tree", string(old))
	input(t, w.Top, env, "160000 "+string(old)+"\ts\n100644 "+string(w.blob("1"))+"\tb\n0 "+string(old.Zero())+"\ta\n", "update-index", "--index-info")
	new := gitops.OID(w.git("commit-tree", command(t, w.Top, env, "write-tree"), "-p", string(old), "-m", "m"))
	changes, err := w.Diff(t.Context(), old, new)
	check(t, err)
	one := gitops.Entry{Mode: gitops.ModeFile, OID: w.blob("1")}
	want := []gitops.Change{{Path: "a", Old: one}, {Path: "b", New: one}, {Path: "s", New: gitops.Entry{Mode: gitops.ModeGitlink, OID: old}}}
	if len(changes) != 3 || changes[0] != want[0] || changes[1] != want[1] || changes[2] != want[2] {
		t.Errorf("Diff: %v, want %v", changes, want)
	}
	// A landing makes the submodule's folder and leaves what is in it alone.
	w.git("config", "--unset", "diff.ignoreSubmodules")
	check(t, Land(t.Context(), w.Repository, w.landing(old, new)))
	if info, err := os.Stat(filepath.Join(w.Top, "s")); err != nil || !info.IsDir() {
		t.Errorf("s: %v, %v", info, err)
	}
	w.landed(new)
}
