package inner

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestPlaces lets an agent work in other worktrees and repositories, and counts what would be lost with them.
func TestPlaces(t *testing.T) {
	const server = "git init -q ../o; git -C ../o commit -qm x --allow-empty; git -C ../o checkout -q --detach; git -C ../o commit -qm y --allow-empty; git -C ../o commit -qm z --allow-empty; git -C ../o tag v1; git -C ../o checkout -q -; "
	const fetched = "; git -C ign config remote.origin.url https://example.com/o; "
	const submodule = "for p in s 't t'; do git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),\"$p\"; done; git commit -qm x; "
	const ignored = "echo ign/ >.git/info/exclude; "
	for name, c := range map[string]struct{ script, want string }{
		"none":                 {"mkdir d; echo x >d/.gitt", "1"},
		"worktree":             {"git worktree add -q w -b side; echo x >w/new; echo x >w/f0", "0 w:2/0"},
		"worktree, clean":      {"git worktree add -q w -b side", "0 w:0/0"},
		"worktree, staged":     {ignored + "git worktree add -q ign/w --detach; cd ign/w; echo x >new; git add new; git rm -q f1", "0 ign/w:2/0 detached"},
		"worktree, committed":  {ignored + "git worktree add -q ign/w --detach; cd ign/w; git commit -qm x --allow-empty", "0 ign/w:0/0 detached"},
		"worktree, relative":   {"git -c worktree.useRelativePaths=true worktree add -q w -b side; echo x >w/new", "0 w:1/0"},
		"worktree, settings":   {"git config extensions.worktreeConfig true; git worktree add -q w -b side; git config x.y z; echo x >w/new", "0 w:1/0"},
		"worktree elsewhere":   {"git worktree add -q ../w -b side; echo x >../w/new", "0 ../w:0/0"},
		"worktree, removed":    {"git worktree add -q ../w -b side; rm -r ../w", "0 ../w:0/0"},
		"worktree, deleted":    {"git worktree add -q w --detach; rm -r w", "0 w:0/0 detached"},
		"beside changes":       {"git worktree add -q d/w -b side; echo x >d/new; echo x >f0", "2 d/w:0/0"},
		"repository":           {"git init -q sub; cd sub; echo x >a; git add a; git commit -qm x; echo y >a; echo b >b", "0 sub:2/1 own"},
		"repository, ignored":  {ignored + "git init -q ign/s; cd ign/s; echo x >a", "0 ign/s:1/0 own"},
		"repository, stash":    {ignored + "git init -q ign/s; cd ign/s; echo x >a; git add a; git commit -qm x; echo y >a; git stash -q; git update-ref -d HEAD; git rm -q --cached a; rm a", "0 ign/s:0/3 own"},
		"nested":               {"git init -q a; git init -q a/b; echo x >a/b/c", "0 a:1/0 own a/b:1/0 own"},
		"in a tracked folder":  {"mkdir d; echo x >d/a; git add d; git commit -qm x; git init -q d; echo '*' >d/.git/info/exclude; echo y >d/a; git init -q e", "1 d:0/0 own e:0/0 own"},
		"clone":                {"git clone -q . ign; cd ign; echo x >new", "0 ign:1/0 own"},
		"clone that is behind": {"git clone -q . ign; git -C ign branch other; git commit -qm x --allow-empty; git commit -qm y --allow-empty", "0 ign:0/0 own"},
		"clone with commit":    {"git clone -q . ign; cd ign; git commit -qm x --allow-empty", "0 ign:0/1 own"},
		"pulled clone":         {"git clone -q . ign; cd ign; git commit -qm x --allow-empty; cd ..; git pull -q ign main", "0 ign:0/0 own"},
		"of a folder":          {"git init -q ../o; git -C ../o commit -qm x --allow-empty; git clone -q ../o ign", "0 ign:0/1 own"},
		"of a server":          {"git init -q ../o; git -C ../o commit -qm x --allow-empty; git clone -q ../o ign; git -C ign config remote.origin.url https://example.com/o", "0 ign:0/0 own"},
		"odd name":             {"d=$(printf 'a\\n*[b] ')c; git init -q \"$d\"; echo x >\"$d/x\"; echo x >ab", "1 a\n*[b] c:1/0 own"},
		"gone":                 {"mkdir d; echo 'gitdir: /nowhere' >d/.git; echo x >d/x", "0 d:0/0 own unread"},
		"no repository":        {"mkdir -p d/.git; echo x >d/x", "1"},
		"pipe":                 {"git init -q d; rm d/.git/HEAD; mkfifo d/.git/HEAD; mkdir e; mkfifo e/.git; echo x >e/x", "1 d:0/0 own unread"},
		"filter":               {"git init -q d; cd d; git config filter.x.clean 'touch ../ran'; echo '* filter=x' >.gitattributes; echo x >a; git add .gitattributes; rm -f ../ran", "0 d:2/0 own"},
		"relative elsewhere":   {"git worktree add -q --detach ../w; echo ../../../../w/.git >.git/worktrees/w/gitdir", "0 ../w:0/0 detached"},
		"relative, removed":    {"git worktree add -q --detach w; rm -r w; echo ../../../w/.git >.git/worktrees/w/gitdir", "0 w:0/0 detached"},
		"not clean":            {"git worktree add -q w -b side; echo x >w/new; echo \"$PWD//d/../w/.git\" >.git/worktrees/w/gitdir; mkdir d", "0 w:1/0"},
		"not below":            {"git worktree add -q ../w -b side; echo \"$PWD/../w/.git\" >.git/worktrees/w/gitdir; echo x >new", "1 ../w:0/0"},
		"tag":                  {server + "git clone -q ../o ign" + fetched, "0 ign:0/0 own"},
		"clone of tag":         {server + "git clone -q -b v1 ../o ign" + fetched, "0 ign:0/0 own"},
		"shallow tag":          {server + "git clone -q --depth 1 -b v1 \"file://${PWD%/*}/o\" ign" + fetched, "0 ign:0/0 own"},
		"shallow commit":       {server + "git init -q ign; git -C ign fetch -q --no-tags --depth 1 \"file://${PWD%/*}/o\" v1; git -C ign checkout -q FETCH_HEAD" + fetched, "0 ign:0/0 own"},
		"tag, HEAD":            {server + "git clone -q -b v1 ../o ign" + fetched + "cd ign; git commit -qm own --allow-empty", "0 ign:0/1 own"},
		"shallow, branch":      {server + "git clone -q --depth 1 \"file://${PWD%/*}/o\" ign" + fetched + "cd ign; git commit -qm own --allow-empty; git commit -qm own2 --allow-empty", "0 ign:0/2 own"},
		"own tag":              {server + "git clone -q ../o ign" + fetched + "cd ign; git commit -qm own --allow-empty; git tag own", "0 ign:0/1 own"},
		"own stash":            {server + "git clone -q -b v1 ../o ign" + fetched + "cd ign; echo x >a; git add a; git stash -q", "0 ign:0/4 own"},
		"of a mirror":          {server + "git clone -q --mirror ../o ../m; git clone -q ../m ign; git -C ../m config remote.origin.url https://example.com/o; cd ign; git commit -qm own --allow-empty", "0 ign:0/1 own"},
		"submodule":            {submodule + "mkdir -p s/empty", "0"},
		"submodule, files":     {submodule + "mkdir -p s/deep/er s/.git; echo x >s/deep/er/f; git worktree add -q w --detach; mkdir -p w/s; echo x >w/s/f", "0 s:0/0 submodule w/s:0/0 submodule w:0/0 detached"},
		"submodule, cloned":    {submodule + "git clone -q . s; mkdir 't t'; git init -q 't t/r'; echo x >'t t/r/f'", "0 s:0/0 own t t/r:1/0 own"},
		"submodule, replaced":  {submodule + "echo x >s; ln -s f0 't t'", "0 s:0/0 submodule t t:0/0 submodule"},
		"of a local mirror":    {server + "git clone -q --mirror ../o ../m; git clone -q ../m ign", "0 ign:0/3 own"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := innerOf(t, 2)
			cmd := exec.Command("sh", "-euc", c.script)
			cmd.Dir, cmd.Env = dir, append(cmd.Environ(), "HOME="+dir+"/.git", "GIT_AUTHOR_NAME=n", "GIT_AUTHOR_EMAIL=n@x", "GIT_COMMITTER_NAME=n", "GIT_COMMITTER_EMAIL=n@x")
			if said, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %s", err, said)
			}
			w := workspaceAt(dir)
			places, err := w.Places(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			n, err := w.Uncommitted(t.Context(), places...)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(n) + textOf(places, dir); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// textOf returns places of a workspace as a text.
func textOf(places []Place, dir string) (text string) {
	for _, p := range places {
		text += fmt.Sprintf(" %s:%d/%d", strings.Replace(p.Path, dir[:strings.LastIndex(dir, "/")], "..", 1), p.Changes, p.Commits)
		if p.Repository {
			text += " own"
		}
		if p.Hidden == Submodule {
			text += " submodule"
		}
		if p.Detached != "" {
			text += " detached"
		}
		if p.Unread {
			text += " unread"
		}
	}
	return text
}

// TestPlacesNotSearched checks that a search that does not end hides neither the places that it has found nor the workspace's own changes.
func TestPlacesNotSearched(t *testing.T) {
	for name, c := range map[string]struct{ find, want string }{
		"slow":              {"printf '%s/d/.git\\0' \"$1\"; exec sleep 100", "2 d:1/0 own :0/0 own unread"},
		"none":              {"exit 127", "3 :0/0 own unread"},
		"killed":            {"printf '%s/d/.git\\0' \"$1\"; kill -9 $$", "2 d:1/0 own :0/0 own unread"},
		"unreadable folder": {"printf '%s/d/.git\\0' \"$1\"; exit 1", "2 d:1/0 own"},
		"endless":           {"while printf '%s/d/.git\\0' \"$1\"; do :; done", "2 d:1/0 own :0/0 own unread"},
		"cut":               {"printf '%s/d/.git\\0%s/e/.gi' \"$1\" \"$1\"; exec sleep 100", "2 d:1/0 own :0/0 own unread"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, bin := innerOf(t, 2), t.TempDir()
			gitIn(t, dir, "init", "-q", "d")
			for _, name := range []string{dir + "/d/x", dir + "/f0", dir + "/new"} {
				if err := os.WriteFile(name, []byte("x"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(bin+"/find", []byte("#!/bin/sh\n"+c.find), 0o755); err != nil {
				t.Fatal(err)
			}
			w := workspaceAt(dir)
			run := w.Run
			w.Run = func(ctx context.Context, p Process) (int, error) {
				p.Env = append(p.Env, "PATH="+bin+":"+os.Getenv("PATH"))
				return run(ctx, p)
			}
			places, err := w.placesWithin(t.Context(), 2*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			n, err := w.Uncommitted(t.Context(), places...)
			if got := fmt.Sprint(n) + textOf(places, dir); got != c.want || err != nil {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}
