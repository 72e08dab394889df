package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/native"
	"github.com/git-airlock/git-airlock/prison/prisontest"
	"github.com/git-airlock/git-airlock/snapshot/checkpoint/files"
)

func TestMain(m *testing.M) {
	files.Reexec()
	os.Exit(m.Run())
}

// TestInPrison makes and restores a checkpoint as the phantom, in a native prison, with files that the agent has closed to itself.
func TestInPrison(t *testing.T) {
	b := native.New()
	if err := b.Probe(t.Context()); err != nil {
		if prisontest.Required("native") {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	dir := t.TempDir()
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s := prison.Spec{ID: "0001", Dir: filepath.Join(dir, "prison"), Workspace: filepath.Join(dir, "workspace"), UID: 1879048200, GID: 1879048200,
		User: "ada", Hostname: "work"}
	if os.Geteuid() != 0 {
		t.Skip("the uid of the phantom depends on the range of the user")
	}
	if err := errors.Join(os.Mkdir(s.Dir, 0o700), b.Prepare(t.Context(), s)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Wipe(context.Background(), s); err != nil {
			t.Error(err)
		}
	})
	box, err := b.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	sh := func(script string) string {
		t.Helper()
		var out, said bytes.Buffer
		status, err := box.Exec(t.Context(), prison.Process{Argv: []string{"sh", "-ec", script}, Stdout: &out, Stderr: &said})
		if err != nil || status != 0 {
			t.Fatalf("%s: status %d, %v: %s", script, status, err, said.String())
		}
		return out.String()
	}
	run := func(ctx context.Context, argv []string, in io.Reader, out, said io.Writer) (int, error) {
		return box.Exec(ctx, prison.Process{Argv: argv, Stdin: in, Stdout: out, Stderr: said})
	}
	sh(`git init -q . && echo one >file && mkdir -p shut/deep && echo two >shut/deep/file && ln -s /etc/passwd link && chmod 000 shut/deep/file shut/deep shut`)
	c, err := files.Open(t.Context(), run, prison.Workspace)
	if err != nil {
		t.Fatal(err)
	}
	store, err := OpenStore(filepath.Join(dir, "checkpoints"), DefaultBytes)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	unreadable := new(Unreadable)
	if _, err := store.Take(t.Context(), c, Options{Now: begin}); !errors.As(err, &unreadable) || unreadable.Paths[0] != "shut" {
		t.Fatalf("an unreadable folder: %v", err)
	}
	w := &world{T: t, store: store, Client: c}
	taken := w.take("in the prison")
	before := listing(t, s.Workspace)
	sh(`chmod 700 shut shut/deep && rm -rf shut/deep .git file && mkdir file && echo x >file/x && ln -sfn /tmp link && chmod 000 file`)
	w.restore(taken.Checkpoint, RestoreOptions{})
	if after := listing(t, s.Workspace); after != before {
		t.Errorf("restored:\n%s", difference(after, before))
	}
	sh(`chmod -R u+rwX .`)
	recent := &Recent{}
	if _, err := store.Take(t.Context(), c, Options{Now: begin, Recent: recent}); err != nil {
		t.Fatal(err)
	}
	sh(`mkdir -p new/a new/b new/c && chmod 000 new/a new/b`)
	_, err = store.Take(t.Context(), c, Options{Now: begin, Recent: recent, Hinted: true, Touched: []string{""}})
	if !errors.As(err, &unreadable) || unreadable.Count != 2 || !slices.Equal(unreadable.Paths, []string{"new/a", "new/b"}) || unreadable.Hides("new/c/x") {
		t.Errorf("two unreadable folders in a new one: %v", err)
	}
	sh(`chmod -R u+rwX .`)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
