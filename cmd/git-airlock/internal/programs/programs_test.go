package programs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison/watch/execs"
)

// started returns a record of a program that started at a millisecond and ran for some.
func started(pid, ppid int, path string, at, ms int64) execs.Record {
	exe := "/bin/" + path
	return execs.Record{Time: time.UnixMilli(at), PID: pid, PPID: ppid, Path: exe, Argv: []string{path}, Exe: &exe, MS: &ms}
}

// TestTree checks the places of children, of a program that replaces another one, and of a number that is used again.
func TestTree(t *testing.T) {
	absent := started(3, 2, "absent", 12, 0)
	absent.Exe, absent.MS = nil, nil
	var got []string
	for _, r := range Tree([]execs.Record{
		started(2, 1, "sh", 0, 1000), absent, started(3, 2, "env", 13, 40), started(3, 2, "make", 14, 39), started(4, 3, "cc", 20, 5),
		started(3, 2, "again", 500, 5), started(9, 1, "visit", 600, 5), started(9, 1, "reused", 900, 1),
	}) {
		got = append(got, fmt.Sprintf("%d %s", r.Depth, r.Argv[0]))
	}
	const want = "0 sh, 1 absent, 1 env, 2 make, 3 cc, 1 again, 0 visit, 0 reused"
	if strings.Join(got, ", ") != want {
		t.Errorf("tree %s, want %s", strings.Join(got, ", "), want)
	}
}

// TestCommand checks that no text of the agent reaches a terminal unescaped.
func TestCommand(t *testing.T) {
	for want, r := range map[string]execs.Record{
		`ls -l`:                     {Path: "/bin/ls", Argv: []string{"ls", "-l"}},
		`sh -c 'a b'`:               {Path: "/bin/sh", Argv: []string{"sh", "-c", "a b"}},
		`/bin/ls: innocent`:         {Path: "/bin/ls", Argv: []string{"innocent"}},
		`./t:`:                      {Path: "./t"},
		`sh -c '\u001b[2Jls\n' ...`: {Path: "/bin/sh", Argv: []string{"sh", "-c", "\x1b[2Jls\n"}, Cut: true},
	} {
		if got := Command(r); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestWithoutTries leaves out what a shell has tried, and nothing else.
func TestWithoutTries(t *testing.T) {
	failed := func(pid int, path string, argv ...string) execs.Record {
		return execs.Record{PID: pid, Path: path, Argv: argv}
	}
	ran := started(1, 0, "expr", 0, 1)
	ran.Argv = []string{"expr", "1"}
	denied, rule := failed(3, "/usr/local/bin/rm", "rm"), "rm"
	denied.Deny = &rule
	later := denied
	later.Path = "/usr/bin/rm"
	all := []execs.Record{
		failed(1, "/usr/local/bin/expr", "expr", "1"), failed(2, "/bin/expr", "expr", "1"), ran,
		failed(2, "/bin/expr", "expr", "1"), failed(2, "/usr/bin/expr", "expr", "2"), denied, later,
	}
	want := []string{"/bin/expr", "/bin/expr", "/bin/expr", "/usr/bin/expr", "/usr/bin/rm"}
	var got []string
	for _, r := range WithoutTries(all) {
		got = append(got, r.Path)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}
