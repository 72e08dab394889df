package agents

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
)

// shell is a prison that runs processes here.
type shell struct {
	prison.Prison
	env []string
}

func (b shell) Exec(ctx context.Context, p prison.Process) (int, error) {
	cmd := exec.CommandContext(ctx, p.Argv[0], p.Argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stderr = p.Dir, b.env, p.Stdin, p.Stderr
	err := cmd.Run()
	return cmd.ProcessState.ExitCode(), err
}

func TestSeed(t *testing.T) {
	home := t.TempDir()
	elsewhere := filepath.Join(home, "elsewhere")
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(home, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("kept", "the user's")
	write("rest.new", "of a killed start")
	for _, link := range []string{"linked", "waiting.new"} {
		if err := os.Symlink(elsewhere, filepath.Join(home, link)); err != nil {
			t.Fatal(err)
		}
	}
	const key = "key-0123456789-0123456789.A_z"
	box := shell{env: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "KEY=" + key, "ODD=a/b$(touch " + elsewhere + ")"}}
	err := Seed(t.Context(), box, Profile{Name: "some", Files: []File{
		{Path: "deep/er/both", Key: "KEY", Content: "1 @KEY@ @KEY@\n2 @KEY-END@ @KEY-END@ \\n $HOME *\n\n"},
		{Path: "deep/er/none", Key: "UNSET", Content: "[@KEY@][@KEY-END@]"},
		{Path: "deep/er/odd", Key: "ODD", Content: "[@KEY@][@KEY-END@]"},
		{Path: "needed", Key: "UNSET", Needs: true, Content: "not written"},
		{Path: "needed", Key: "KEY", Needs: true, Content: "first"},
		{Path: "needed", Content: "not written"},
		{Path: "kept", Content: "not written"},
		{Path: "linked", Content: "not written"},
		{Path: "rest", Content: "all of it"},
		{Path: "waiting", Content: "of two"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"deep/er/both": "1 " + key + " " + key + "\n2 " + strings.Repeat(key[len(key)-20:]+" ", 2) + "\\n $HOME *\n\n",
		"deep/er/none": "[][]", "deep/er/odd": "[][]", "needed": "first", "kept": "the user's", "rest": "all of it", "waiting": "of two",
	} {
		content, err := os.ReadFile(filepath.Join(home, name))
		if err != nil || string(content) != want {
			t.Errorf("%s: %q, %v, want %q", name, content, err, want)
		}
		if info, err := os.Stat(filepath.Join(home, name)); err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v", name, info.Mode())
		}
	}
	if _, err := os.Lstat(elsewhere); err == nil {
		t.Error("a link was followed, or a value was obeyed")
	}
	if err := Seed(t.Context(), shell{env: []string{"HOME=/no/such/home"}}, Profile{Name: "some", Files: []File{{Path: "a"}}}); err == nil {
		t.Error("no home: no error")
	}
}
