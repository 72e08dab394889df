package inner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// workspaceAt runs git of the host in a repository, as it runs in a prison.
func workspaceAt(dir string) Workspace {
	return Workspace{Dir: dir, Scratch: filepath.Join(dir, ".git/scratch"), Run: func(ctx context.Context, p Process) (int, error) {
		cmd := exec.CommandContext(ctx, p.Argv[0], p.Argv[1:]...)
		cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, p.Stdin, p.Stdout, p.Stderr
		cmd.WaitDelay = time.Second // what a killed shell has started does not end with it, as it does in a prison
		cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, ".git")}, p.Env...)
		return gitopstest.ExitStatus(cmd)
	}}
}

func gitIn(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, ".git"), "GIT_CONFIG_NOSYSTEM=1"}, gitops.FixedEnv...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %q: %v", args, err)
	}
	return out
}

func innerOf(t *testing.T, files int) string {
	t.Helper()
	dir := t.TempDir()
	gitIn(t, dir, "init", "-q", "-b", "main")
	gitIn(t, dir, "config", "user.name", "n")
	gitIn(t, dir, "config", "user.email", "n@x")
	for i := range files {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("f", i)), []byte("one\ntwo\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	gitIn(t, dir, "add", "-A")
	gitIn(t, dir, "commit", "-q", "--allow-empty", "-m", "base")
	return dir
}

// TestUncommittedLikeGit counts what plain git status counts, whatever an agent did and set.
func TestUncommittedLikeGit(t *testing.T) {
	cases := 150
	if testing.Short() {
		cases = 50
	}
	random := rand.New(rand.NewPCG(3, 4))
	settings := [][]string{
		{"core.autocrlf", "true"}, {"core.autocrlf", "input"}, {"core.filemode", "false"}, {"core.excludesFile", "f0"}, {"core.eol", "crlf"},
		{"core.ignorecase", "true"}, {"core.untrackedcache", "true"}, {"core.splitindex", "true"}, {"core.symlinks", "false"},
		{"core.excludesFile", "a \"b\"\\c\n\td"}, {"x.y", "z"}, {"x.a b.y", "z"}, {"status.branch", "true"}, {"core.quotepath", "false"},
		{"status.short", "false"}, {"core.sparsecheckout", "true"}, {"index.version", "4"},
	}
	for n := range cases {
		dir := innerOf(t, 6)
		do := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		at := func(i int) string { return filepath.Join(dir, fmt.Sprint("f", i)) }
		for range random.IntN(4) {
			s := settings[random.IntN(len(settings))]
			gitIn(t, dir, "config", s[0], s[1])
		}
		for i := range 6 {
			switch random.IntN(9) {
			case 0:
				do(os.WriteFile(at(i), []byte("one\r\ntwo\r\n"), 0o644))
			case 1:
				do(os.WriteFile(at(i), []byte("f10\nother\n"), 0o755))
			case 2:
				do(os.Remove(at(i)))
			case 3:
				do(os.WriteFile(at(i+10), []byte("*3\n"), 0o644))
			case 4:
				do(os.WriteFile(filepath.Join(dir, ".gitattributes"), []byte("* text=auto\nf1 -text\nf2 ident\n"), 0o644))
			case 5:
				do(os.WriteFile(filepath.Join(dir, ".git/info/exclude"), []byte("f1*\n"), 0o644))
			case 6:
				gitIn(t, dir, "add", "-A")
			case 7:
				gitIn(t, dir, "update-ref", "-d", "refs/heads/none")
				gitIn(t, dir, "switch", "-q", "--detach")
			}
		}
		want := bytes.Count(gitIn(t, dir, "status", "--porcelain", "-z", "--no-renames", "--no-branch"), []byte{0})
		got, err := workspaceAt(dir).Uncommitted(t.Context())
		if err != nil || got != want {
			t.Fatalf("case %d: %d, %v; git counts %d\n%s", n, got, err, want, gitIn(t, dir, "status", "--porcelain"))
		}
	}
}

// TestUncommittedBehindMarks counts the changes of files that git was told to take for unchanged, and leaves the agent's index as it is.
func TestUncommittedBehindMarks(t *testing.T) {
	for name, c := range map[string]struct {
		commands [][]string
		want     int
	}{
		"both":     {[][]string{{"update-index", "--skip-worktree", "f0"}, {"update-index", "--assume-unchanged", "f1", "f2"}}, 2},
		"one file": {[][]string{{"update-index", "--assume-unchanged", "f1"}, {"update-index", "--skip-worktree", "f0", "f1"}}, 2},
		"split":    {[][]string{{"update-index", "--split-index"}, {"update-index", "--skip-worktree", "f0"}, {"update-index", "--assume-unchanged", "f1"}}, 2},
		"settings": {[][]string{{"config", "a.b", "c"}, {"config", "core.sparseCheckout", "false"}, {"update-index", "--skip-worktree", "f0"}, {"update-index", "--assume-unchanged", "f1"}}, 2},
		"sparse":   {[][]string{{"sparse-checkout", "set", "--cone", "d"}}, 0},
		"absent":   {[][]string{{"update-index", "--skip-worktree", "d/f"}, {"rm", "-r", "--cached", "-q", "d/g"}}, 2},
	} {
		dir := innerOf(t, 3)
		write := func(name string) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("new\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for _, folder := range []string{"d", "e"} {
			if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil {
				t.Fatal(err)
			}
			write(folder + "/f")
			write(folder + "/g")
		}
		gitIn(t, dir, "add", "-A")
		gitIn(t, dir, "commit", "-qm", "folders")
		for _, args := range c.commands {
			gitIn(t, dir, args...)
		}
		if name == "absent" {
			if err := os.Remove(filepath.Join(dir, "d/f")); err != nil {
				t.Fatal(err)
			}
		} else if name != "sparse" {
			write("f0")
			write("f1")
		}
		index := gitIn(t, dir, "ls-files", "-v", "-s")
		for range 2 {
			if n, err := workspaceAt(dir).Uncommitted(t.Context()); err != nil || n != c.want {
				t.Errorf("%s: %d changes, %v; want %d", name, n, err, c.want)
			}
		}
		if after := gitIn(t, dir, "ls-files", "-v", "-s"); !bytes.Equal(index, after) {
			t.Errorf("%s: the agent's index has become\n%s, and was\n%s", name, after, index)
		}
	}
}

// TestNothingOfTheAgentRuns configures all that git runs, and takes every look that there is.
func TestNothingOfTheAgentRuns(t *testing.T) {
	dir := innerOf(t, 3)
	ran := filepath.Join(t.TempDir(), "ran")
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$0 $*\" >>"+ran+"\ncat\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	run := "sh -c 'echo ran >>" + ran + "; cat' "
	for key, value := range map[string]string{
		"filter.x.clean": run, "filter.x.smudge": run, "filter.x.required": "true", "filter.y.process": run, "filter.x.y.clean": run,
		"core.fsmonitor": program, "core.pager": run, "core.editor": run, "core.sshCommand": run, "core.askPass": program,
		"core.alternateRefsCommand": run, "core.gitProxy": program, "core.attributesFile": dir + "/.git/attributes",
		"diff.external": program, "diff.x.textconv": run, "diff.x.command": program, "merge.x.driver": run, "gpg.program": program,
		"log.showSignature": "true", "hook.x.command": run, "hook.x.event": "post-index-change", "uploadpack.packObjectsHook": program,
		"remote.origin.url": "ext::" + run, "remote.origin.promisor": "true", "credential.helper": "!" + run, "alias.status": "!" + run,
		"alias.rev-list": "!" + run, "pager.status": run, "pager.rev-list": run, "submodule.x.update": "!" + run, "trace2.eventTarget": ran,
		"include.path": "more",
	} {
		gitIn(t, dir, "config", key, value)
	}
	hooks := filepath.Join(dir, ".git/hooks")
	err := os.MkdirAll(hooks, 0o755)
	for _, hook := range []string{"post-index-change", "reference-transaction", "fsmonitor-watchman", "query-watchman", "pre-auto-gc", "post-checkout"} {
		err = errors.Join(err, os.Symlink(program, filepath.Join(hooks, hook)))
	}
	for file, content := range map[string]string{
		".gitattributes": "f0 filter=x diff=x\nf1 filter=y\nf2 filter=x.y merge=x\n", ".git/info/attributes": "* filter=x\n", ".git/attributes": "* filter=x\n",
		".git/more": "[filter \"z\"]\n\tclean = " + run + "\n", "f0": "changed\n", "f1": "changed\n", "f2": "changed\n",
	} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
	w := workspaceAt(dir)
	if n, err := w.Uncommitted(t.Context()); err != nil || n != 5 {
		t.Errorf("%d paths, %v", n, err)
	}
	main, err := w.Main(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err1 := w.Branches(t.Context(), "refs")
	_, err2 := w.Resolve(t.Context(), "main")
	_, err3 := w.Count(t.Context(), "HEAD")
	_, err4 := w.FirstParents(t.Context(), main, nil)
	_, err5 := w.PathOf(t.Context(), main, main)
	err6 := w.Pack(t.Context(), main, nil, &bytes.Buffer{})
	_, err7 := w.Usage(t.Context())
	err8 := w.CheckSizes(t.Context(), main, nil, DefaultLimits)
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7, err8); err != nil {
		t.Error(err)
	}
	if said, err := os.ReadFile(ran); err == nil {
		t.Errorf("something ran: %s", said)
	}
	gitIn(t, dir, "status", "--porcelain")
	if _, err := os.ReadFile(ran); err != nil {
		t.Error("plain git status ran nothing: the test proves nothing")
	}
}

// TestPlainConfiguration checks which inner configurations are used as they are: those that name no program.
func TestPlainConfiguration(t *testing.T) {
	dir := innerOf(t, 1)
	plain, err := os.ReadFile(filepath.Join(dir, ".git/config"))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{
		"": 0, "[user]\n\tname = # no \tname\n": 0,
		"[filter \"x\"]\n\tclean = x\n": 77, "[include]\n\tpath = x\n": 77, "[core] fsmonitor = x\n": 77, "\tfsmonitor = x\n": 77,
		"\tname = x\\\n[core]\n": 77, "[user]\n\tname = \"x\"\n": 77, "\tname = x": 77, "name = x\n": 77, "# x\n": 77, "\n": 77,
	} {
		if err := os.WriteFile(filepath.Join(dir, ".git/config"), append(plain[:len(plain):len(plain)], text...), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, code, err := workspaceAt(dir).countChanges(t.Context(), "plain", ""); code != want || (err == nil) != (want == 0) {
			t.Errorf("%q: status %d, %v; want %d", text, code, err, want)
		}
	}
}

// TestUncommittedWithLargeHead has a commit of HEAD that takes little space on the disk, and git status would inflate all of it.
func TestUncommittedWithLargeHead(t *testing.T) {
	dir := t.TempDir()
	gitIn(t, dir, "init", "-q", "-b", "main", ".")
	message := filepath.Join(t.TempDir(), "message")
	if err := os.WriteFile(message, bytes.Repeat([]byte("long\n"), headLimit/5+1), 0o600); err != nil {
		t.Fatal(err)
	}
	gitIn(t, dir, "-c", "user.name=a", "-c", "user.email=b", "commit", "-q", "--allow-empty", "--cleanup=verbatim", "-F", message)
	n, err := workspaceAt(dir).Uncommitted(t.Context())
	if _, refused := errors.AsType[*Invalid](err); !refused || !strings.Contains(err.Error(), "the commit of HEAD has ") {
		t.Errorf("%d paths, %v", n, err)
	}
}

// withoutError ends at an error, as the input of a process in a prison does.
type withoutError struct{ io.Reader }

func (r withoutError) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil {
		err = io.EOF
	}
	return n, err
}

// TestHistoryWithLargeCommit has a commit with a parent that takes little space on the disk, and git rev-list would inflate all of it.
func TestHistoryWithLargeCommit(t *testing.T) {
	for _, packed := range []bool{false, true} {
		dir := innerOf(t, 1)
		message := filepath.Join(t.TempDir(), "message")
		if err := os.WriteFile(message, bytes.Repeat([]byte("long\n"), 1<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		gitIn(t, dir, "-c", "user.name=a", "-c", "user.email=b", "commit", "-q", "--allow-empty", "--cleanup=verbatim", "-F", message)
		gitIn(t, dir, "-c", "user.name=a", "-c", "user.email=b", "commit", "-q", "--allow-empty", "-m", "tip")
		if packed {
			gitIn(t, dir, "repack", "-a", "-d", "-q")
		}
		w := workspaceAt(dir)
		run := w.Run
		w.Run = func(ctx context.Context, p Process) (int, error) {
			if slices.Contains(p.Env, objectLimit) {
				p.Env = append(slices.Clone(p.Env), "GIT_ALLOC_LIMIT=1m")
			}
			if p.Stdin != nil {
				p.Stdin = withoutError{p.Stdin}
			}
			return run(ctx, p)
		}
		tip, err := w.Main(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err1 := w.Count(t.Context(), "main")
		_, err2 := w.FirstParents(t.Context(), tip, nil)
		limits := DefaultLimits
		limits.Commit = 1 << 30
		for _, err := range []error{err1, err2, w.CheckSizes(t.Context(), tip, nil, limits)} {
			refused, _ := errors.AsType[*Invalid](err)
			if refused == nil || !refused.Limit || !strings.HasPrefix(err.Error(), "an object in the history has 524") {
				t.Errorf("packed %v: %v", packed, err)
			}
		}
	}
}
