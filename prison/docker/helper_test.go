package docker

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// shallowRm behaves like an rm(1) that uses whole paths and can open few files.
const shallowRm = `#!/bin/sh
exec find "$2" -mindepth 1 -maxdepth 400 -depth -delete
`

// TestEmptyScript removes a tree that is too deep for rm(1) and contains odd names. The target of a link must stay.
func TestEmptyScript(t *testing.T) {
	bin, top, outside := t.TempDir(), t.TempDir(), t.TempDir()
	for file, content := range map[string]string{bin + "/rm": shallowRm, outside + "/treasure": ""} {
		if err := os.WriteFile(file, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run := func(script string, args ...string) {
		t.Helper()
		cmd := exec.Command("sh", append([]string{"-c", script, "sh"}, args...)...)
		cmd.Dir, cmd.Env = top, []string{"PATH=" + bin + ":" + os.Getenv("PATH")}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %.200s", err, out)
		}
	}
	for _, name := range []string{"d", "-rf", "..x", ".1", strings.Repeat("long", 50)} {
		run(`i=0; while [ $i -lt 100 ]; do mkdir -p "./$1/$1/$1/$1/$1" && cd -P "./$1/$1/$1/$1/$1" 2>/dev/null || exit; i=$((i + 1)); done
			ln -s "$2" link`, name, outside)
	}
	if err := exec.Command("sh", "-c", emptyScript, "sh", top, "1:1", "1:1:1").Run(); err == nil {
		t.Error("another folder is emptied")
	}
	if left, err := os.ReadDir(top); err != nil || len(left) == 0 {
		t.Errorf("left in another folder: %v, %v", left, err)
	}
	folder, owner := folderOf(top)
	run(emptyScript, top, folder, owner)
	if left, err := os.ReadDir(top); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
		exec.Command("/bin/rm", "-rf", top).Run()
	}
	if _, err := os.Stat(filepath.Join(outside, "treasure")); err != nil {
		t.Error(err)
	}
}

// TestSameFolder compares folders as another kernel shows them, and as an image without stat(1) does.
func TestSameFolder(t *testing.T) {
	dir := t.TempDir()
	folder, owner := folderOf(dir)
	for inside, same := range map[[2]string]bool{
		{folder, owner}: true, {folder, "0:0:0"}: true, {"1:1", owner}: true, {"-", "-"}: true, {"1:1", "0:0:0"}: false, {"", ""}: false,
	} {
		if sameFolder(dir, inside[0], inside[1]) != same {
			t.Errorf("%q, want %t", inside, same)
		}
	}
}
