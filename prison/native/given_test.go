//go:build linux

package native_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/prisontest"

	"golang.org/x/sys/unix"
)

// closedHome returns a folder inside another one that only its owner may enter.
func closedHome(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "home-of-ursula")
	if err := os.MkdirAll(filepath.Join(dir, "kit", "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"kit/bin/greet": 0o755, "kit/bin/git-airlock": 0o755, "single": 0o755, "neighbour": 0o644, "closed": 0o700} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho "+filepath.Base(name)+" $0\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// writable returns a script that prints which of the paths are writable, or "none".
func writable(paths ...string) string {
	return `n=none; for f in ` + strings.Join(paths, " ") + `; do ! (true >>"$f") 2>/dev/null || n=$f; done; echo $n`
}

func TestTools(t *testing.T) {
	b, s := prepared(t)
	home := closedHome(t)
	s.Tools = []prison.Tool{{Name: "kit", Path: home + "/kit"}, {Name: "one", Path: home + "/single"}}
	isolation := start(t, b, s)
	t.Logf("weaker: %q", isolation.Weaker)
	for script, want := range map[string]string{
		"greet":                      "greet /tools/kit/bin/greet",
		"one":                        "single /tools/one",
		"ls /tools /tools/kit/bin":   "/tools:\nkit\none\n\n/tools/kit/bin:\ngreet",
		"echo $PATH | cut -d: -f1-2": "/tools:/tools/kit/bin",
		writable("/tools/new", "/tools/kit/new", "/tools/kit/bin/greet", "/tools/one"): "none",
	} {
		if got := output(t, b, s, script); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	seen := output(t, b, s, "cat /proc/self/mountinfo; find / -path /proc -prune -o -print 2>/dev/null | grep -v ^/usr")
	for _, word := range []string{"ursula", "neighbour", "airlock", "layers"} {
		if strings.Contains(seen, word) {
			t.Errorf("inside one can read %q", regexp.MustCompile(`(?m)^.*`+word+`.*$`).FindString(seen))
		}
	}
	// A read-only prison has no tools.
	s.ReadOnly = true
	look, err := b.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer look.Close()
	if status, err := look.Exec(t.Context(), prison.Process{Argv: []string{"test", "-e", "/tools"}}); err != nil || status != 1 {
		t.Errorf("status %d, %v", status, err)
	}
}

// TestToolsRefused uses tools that Start must refuse, and checks that no process is left.
func TestToolsRefused(t *testing.T) {
	b, s := prepared(t)
	home := closedHome(t)
	tool := func(name, path string) prison.Tool { return prison.Tool{Name: name, Path: path} }
	for reason, tools := range map[string][]prison.Tool{
		"no such file":              {tool("x", home+"/nothing")},
		"only its owner":            {tool("x", home+"/closed")},
		"absolute":                  {tool("x", "kit")},
		"tool name":                 {tool("a/b", home+"/kit")},
		"two tools are called":      {tool("x", home+"/kit"), tool("x", home+"/single")},
		"neither a file nor a fold": {tool("null", "/dev/null")},
	} {
		s.Tools = tools
		if _, err := b.Start(t.Context(), s); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%v: %v", tools, err)
		}
	}
	if n := gidProcesses(s.GID); n > 0 {
		t.Errorf("%d processes", n)
	}
}

// smallRoot makes a root file system with some programs and their libraries.
func smallRoot(t *testing.T) string {
	t.Helper()
	_, err := exec.LookPath("ldd") // ldd prints the libraries that a program needs
	prisontest.Need(t, "native", err)
	root := filepath.Join(t.TempDir(), "root-of-ursula")
	for _, dir := range []string{"usr/bin", "etc", "var/lib/there", "opt", "home/somebody"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for file, content := range map[string]string{"etc/here": "here\n", "etc/passwd": "wrong\n", "opt/file": "", "var/lib/there/file": ""} {
		if err := os.WriteFile(filepath.Join(root, file), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64", "etc/shadow": "/etc/shadow"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, program := range []string{"sh", "cat", "ls", "id", "touch", "head", "tr", "find"} {
		path, err := exec.LookPath(program)
		if err != nil {
			t.Fatal(err)
		}
		files := []string{path}
		libraries, err := exec.Command("ldd", path).Output()
		prisontest.Need(t, "native", err)
		files = append(files, regexp.MustCompile(`/\S+`).FindAllString(string(libraries), -1)...)
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			target := filepath.Join(root, "usr", strings.TrimPrefix(file, "/usr"))
			if file == path {
				target = filepath.Join(root, "usr/bin", program)
			}
			if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(target, content, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Chmod(filepath.Dir(root), 0o700); err != nil {
		t.Fatal(err)
	}
	return root
}

// TestRootFileSystem starts a prison with a root file system other than the host's.
func TestRootFileSystem(t *testing.T) {
	b, s := prepared(t)
	s.Root = smallRoot(t)
	start(t, b, s)
	for script, want := range map[string]string{
		"ls /usr/bin":                   "cat\nfind\nhead\nid\nls\nsh\ntouch\ntr",
		"id -un":                        s.User,
		"cat /etc/here":                 "here",
		"ls /var /var/lib /opt /home":   "/home:\n" + s.User + "\n\n/opt:\nfile\n\n/var:\nlib\ntmp\n\n/var/lib:\nthere",
		"touch ~/x /tmp/x x && echo ok": "ok",
		"cat /etc/shadow || echo no":    "no",
		writable("/x", "/etc/x", "/etc/here", "/usr/x", "/usr/bin/ls", "/opt/x", "/opt/file", "/var/x", "/var/lib/there/x"): "none",
	} {
		if got := output(t, b, s, script); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	seen := output(t, b, s, "cat /proc/self/mountinfo; find / -path /proc -prune -o -print")
	for _, word := range []string{"ursula", "somebody", "layers", s.Root} {
		if strings.Contains(seen, word) {
			t.Errorf("inside one can read %q", regexp.MustCompile(`(?m)^.*`+word+`.*$`).FindString(seen))
		}
	}
}

// TestToolsAnywhere shares tools with odd names, and tools at places where the kernel refuses an overlay: a folder with a mount in it,
// the mount itself, shared memory, and the target of a link.
func TestToolsAnywhere(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts") // an ordinary user's prison is built in the same way
	}
	b, s := prepared(t)
	dir := t.TempDir()
	odd := filepath.Join(dir, "a b\nc")
	mounted := filepath.Join(dir, "mounted")
	for _, folder := range []string{odd, mounted} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount("none", mounted, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(mounted, unix.MNT_DETACH) })
	shm, err := os.MkdirTemp("/dev/shm", "tool")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(shm) })
	for name, folder := range map[string]string{"beside": dir, "odd": odd, "mount": mounted, "shm": shm} {
		path := filepath.Join(folder, "greet")
		if err := errors.Join(os.Chmod(folder, 0o755), os.WriteFile(path, []byte("#!/bin/sh\necho greet\n"), 0o755)); err != nil {
			t.Fatal(err)
		}
		s.Tools = append(s.Tools, prison.Tool{Name: name, Path: path}, prison.Tool{Name: name + "-folder", Path: folder})
	}
	link := filepath.Join(odd, "link")
	if err := os.Symlink(filepath.Join(dir, "greet"), link); err != nil {
		t.Fatal(err)
	}
	s.Tools = append(s.Tools, prison.Tool{Name: "link", Path: link})
	isolation := start(t, b, s)
	if !strings.Contains(fmt.Sprint(isolation.Weaker), "the tool beside is visible") {
		t.Errorf("weaker: %q", isolation.Weaker)
	}
	for _, tool := range s.Tools {
		path := "/tools/" + tool.Name
		if strings.HasSuffix(tool.Name, "-folder") {
			path += "/greet"
		}
		if got := output(t, b, s, path+"; "+writable(path)); got != "greet\nnone" {
			t.Errorf("%s: %q", path, got)
		}
	}
}
