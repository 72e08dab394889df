package runs

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/git-airlock/git-airlock/prison/watch/execs"
	"github.com/git-airlock/git-airlock/promote/record"
)

// programLog returns the record of programs that the watcher of a prison keeps in a folder, or nil if there is none.
func programLog(dir string) (all []byte) {
	for _, name := range execs.Names() {
		if content, err := os.ReadFile(filepath.Join(dir, name)); err == nil && all == nil {
			all = content
		} else if err == nil {
			all = append(all, content...)
		}
	}
	return all
}

// programDir returns the folder with the record of programs. Its writer is a moment behind, see [execs.Complete].
func (k Keeper) programDir() string { return k.Prisons.Spec(k.Record).Dir }

// programLogSize returns the size of the newest part of the record of programs, 0 if there is none.
func (k Keeper) programLogSize() int64 {
	info, err := os.Stat(filepath.Join(k.programDir(), record.ExecName))
	if err != nil {
		return 0
	}
	return info.Size()
}

// allowed is in the line of each program that no rule refused. Most lines need not be decoded because of it.
var allowed = []byte(`,"deny":null,`)

// refusedPrograms returns an event for each program that a rule refused, of those after the one with the number last, and the number
// of the newest one. A program that is looked for in five folders of PATH is refused five times, and has one event.
func (k Keeper) refusedPrograms(last uint64) (all []record.Event, newest uint64) {
	newest = last
	var before record.Exec
	var lines [][]byte
	for line := range bytes.Lines(programLog(k.programDir())) {
		if !bytes.Contains(line, allowed) {
			lines = append(lines, line)
		}
	}
	var refused []record.Exec // most of them twice
	_ = record.EachLine(record.ExecName, bytes.Join(lines, nil), func(e record.Exec, _ []byte) {
		if e.Deny != nil {
			refused = append(refused, e)
		}
	})
	slices.SortStableFunc(refused, func(a, b record.Exec) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, e := range refused {
		if e.Seq <= newest {
			continue
		}
		again := e.Seq == before.Seq+1 && before.PID == e.PID && slices.Equal(before.Argv, e.Argv)
		if newest, before = e.Seq, e; again {
			continue
		}
		all = append(all, record.Event{Time: e.Time.UTC(), Level: record.Warning, Kind: record.EventDenied, Session: k.Record.Session,
			Text: fmt.Sprintf("the rule %s refused a program: %s", *e.Deny, record.Manifest{Argv: e.Argv}.Command(shownCommand)), Data: map[string]string{"path": e.Path, "rule": *e.Deny}})
	}
	return all, newest
}
