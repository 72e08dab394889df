package prisontest

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison"
)

// twoPolls is a time in which a watch that polls does so at least twice on an idle machine.
const twoPolls = 400 * time.Millisecond

// expectWake waits for a change, and logs how long that took.
func expectWake(t *testing.T, what string, changes <-chan struct{}) {
	t.Helper()
	begun := time.Now()
	select {
	case _, open := <-changes:
		if !open {
			t.Fatalf("%s: the watch ended", what)
		}
		t.Logf("%s: reported after %v", what, time.Since(begun).Round(time.Millisecond/10))
	case <-time.After(patience):
		t.Errorf("%s: nothing in %v", what, patience)
	}
	drain(changes)
}

// drain receives changes until none has come for a moment.
func drain(changes <-chan struct{}) {
	for {
		select {
		case _, open := <-changes:
			if !open {
				return
			}
		case <-time.After(30 * time.Millisecond):
			return
		}
	}
}

func watches(t *testing.T, x *box) {
	x.must(t, "mkdir refs; echo 1 > head")
	ctx, cancel := context.WithCancel(t.Context())
	paths := []string{prison.Workspace + "/refs", prison.Workspace + "/head", prison.Workspace + "/later/refs"}
	changes, err := x.Watch(ctx, paths)
	if err != nil {
		t.Fatal(err)
	}
	unconcerned(t, x, changes)
	change := func(what, script string) {
		t.Helper()
		x.must(t, script)
		expectWake(t, what, changes)
	}
	change("a new file", "echo 1 > refs/x.lock; mv refs/x.lock refs/x")
	change("a file replaced", "echo 2 > head.lock; mv head.lock head")
	change("a folder that comes later", "mkdir -p later/refs")
	change("a file in it", "echo > later/refs/y")
	change("a file removed", "rm refs/x")
	x.must(t, "rm -r later")
	drain(changes)
	change("the folder again", "mkdir -p later/refs")
	change("a file in it again", "echo > later/refs/y")
	cancel()
	ended := time.After(patience)
	for open := true; open; {
		select {
		case _, open = <-changes: // a late report may still come
		case <-ended:
			t.Fatal("the watch does not end with its context")
		}
	}
}

// unconcerned changes files that are not watched, and checks that this is not reported. A late report of another change may come, but it
// does not come again and again.
func unconcerned(t *testing.T, x *box, changes <-chan struct{}) {
	t.Helper()
	for range 10 {
		drain(changes)
		x.must(t, "echo > elsewhere")
		select {
		case <-changes:
		case <-time.After(twoPolls):
			return
		}
	}
	t.Error("a change elsewhere was reported")
}

// looking checks a read-only prison beside a working one on the same workspace.
func looking(t *testing.T, b prison.Backend, o Options) {
	x := start(t, b, o)
	look := open(t, b, x.spec)
	x.must(t, "mkdir refs; echo content > file")
	if got := look.must(t, "cat file"); got != "content" {
		t.Errorf("read %q", got)
	}
	for _, script := range []string{"touch new", "echo > file", "rm file", "mkdir d", "chmod 777 file", "mv file other"} {
		if look.sh(t, script).status == 0 {
			t.Errorf("%s: succeeded", script)
		}
	}
	t.Run("table", func(t *testing.T) { table(t, look) })
	changes, err := look.Watch(t.Context(), []string{prison.Workspace + "/refs"})
	if err != nil {
		t.Fatal(err)
	}
	drain(changes)
	x.must(t, "echo 1 > refs/x.lock; mv refs/x.lock refs/x")
	expectWake(t, "a change made in the other prison", changes)

	second := open(t, b, x.spec)
	if got := second.must(t, "cat file"); got != "content" {
		t.Errorf("a second one reads %q", got)
	}
	before := len(processesOf(t, x.spec))
	if err := look.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if after := len(processesOf(t, x.spec)); after >= before && !x.ownKernel() {
		t.Errorf("%d processes before the end, %d after it", before, after)
	}
	if err := b.Stop(t.Context(), x.spec); err != nil {
		t.Errorf("stop beside an open one: %v", err)
	}
	var out bytes.Buffer
	if _, err := second.Exec(t.Context(), prison.Process{Argv: []string{"cat", "file"}, Stdout: &out}); err != nil || out.String() != "content\n" {
		t.Errorf("the open one after the other's end: %v, %q", err, out.String())
	}
	if err := second.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if left := processesOf(t, x.spec); len(left) > 0 {
		t.Errorf("processes left: %q", left)
	}
}
