package runs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison/watch/execs"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/words"
)

// programLine is a program with its line in the record.
type programLine struct {
	record.Exec
	line []byte
}

// programs adds the programs that ran, from the files that the prison's watcher writes.
func (g *gathering) programs(ctx context.Context) error {
	if err := execs.Complete(ctx, g.programDir()); err != nil {
		return err
	}
	until := g.until()
	all := programLog(g.programDir())
	if all == nil {
		g.absent[record.ExecName] = "the prison records no programs"
		g.visibility = append(g.visibility, record.UnseenPrograms)
		return nil
	}
	kept, lost := g.programsUntil(until, all)
	if lost > 0 { // one that runs still may be without its line for a moment
		time.Sleep(lineAfter)
		kept, lost = g.programsUntil(until, programLog(g.programDir()))
	}
	g.visibility = append(g.visibility, record.UnseenInside)
	if slices.ContainsFunc(kept, programLine.refused) {
		g.found(record.Denied, "a rule refused a program")
	}
	content, about, left := fitting(kept)
	g.put(record.ExecName, content, about)
	if lost += left; lost > 0 {
		g.Manifest.Unlisted.Programs = lost
		g.visibility = append(g.visibility, fmt.Sprintf("the record lacks %s of this run", words.Count(int(lost), "program")))
	}
	if about.Cut == 0 {
		for _, p := range kept {
			g.execs = append(g.execs, p.Exec)
		}
	}
	return nil
}

// lineAfter is longer than the watcher waits with the line of a program that runs.
const lineAfter = 300 * time.Millisecond

func (p programLine) refused() bool { return p.Deny != nil }

// programsUntil returns the programs of the run up to a moment, in the order of their numbers, and how many others had a number since its
// beginning.
func (g *gathering) programsUntil(until time.Time, all []byte) (kept []programLine, lost uint64) {
	most := bytes.Count(all, newline)
	latest := make(map[uint64]int, most)
	kept = make([]programLine, 0, most)
	newest, known := g.Programs, map[uint64]bool{}                               // of the programs since the beginning
	_ = record.EachLine(record.ExecName, all, func(e record.Exec, line []byte) { // a line may be in the making
		if e.Time.After(until) {
			return
		}
		if e.Seq > g.Programs {
			newest, known[e.Seq] = max(newest, e.Seq), true
		}
		if e.Time.Before(g.Manifest.Started) {
			return
		}
		e, line = g.withoutValues(e, line)
		if i, known := latest[e.Seq]; known { // a later line replaces an earlier one
			kept[i] = programLine{e, line}
			return
		}
		latest[e.Seq] = len(kept)
		kept = append(kept, programLine{e, line})
	})
	slices.SortStableFunc(kept, func(a, b programLine) int { return cmp.Compare(a.Seq, b.Seq) })
	return kept, newest - g.Programs - uint64(len(known))
}

// withoutValues returns the line of a program without the values of variables. The recorder knows those of the present prison alone.
func (g *gathering) withoutValues(e record.Exec, line []byte) (record.Exec, []byte) {
	words := g.values.Words(e.Argv)
	if slices.Equal(words, e.Argv) {
		return e, line
	}
	e.Argv = words
	return e, lineOf(e, line)
}

// lineOf returns the line of a program, or another one if it has none.
func lineOf(e record.Exec, other []byte) []byte {
	if line, err := json.Marshal(e); err == nil {
		return line
	}
	return other
}

// shortArguments is how many bytes of arguments each program keeps in a record that has no room for all.
const shortArguments = 512

// fitting returns a file with the lines of programs. If they are too many, it first cuts long arguments, and then leaves out the last programs:
// up to half of the file, those that were refused stay. left is the number of those that it left out.
func fitting(all []programLine) (content []byte, about record.File, left uint64) {
	size := 0
	for _, p := range all {
		size += len(p.line) + 1
	}
	room, keep := record.MaxFile, make([]bool, len(all))
	if size > room {
		about.Note = "long arguments are cut"
		for i := range all {
			all[i].shorten()
		}
	}
	take := func(least int, wanted func(programLine) bool) {
		for i, p := range all {
			if keep[i] || !wanted(p) {
				continue
			}
			if room-len(p.line)-1 < least {
				return
			}
			room, keep[i] = room-len(p.line)-1, true
		}
	}
	take(record.MaxFile/2, programLine.refused)
	take(0, func(programLine) bool { return true })
	content = make([]byte, 0, record.MaxFile-room)
	for i, p := range all {
		if keep[i] {
			content = append(append(content, p.line...), '\n')
		} else {
			left++
		}
	}
	if left > 0 {
		about.Note = "long arguments are cut, and the last programs are left out"
	}
	about.Cut = int64(size - len(content))
	return content, about, left
}

// shorten cuts long arguments.
func (p *programLine) shorten() {
	if len(p.line) <= 2*shortArguments {
		return
	}
	most := shortArguments
	argv := p.Argv
	p.Argv = nil
	for _, word := range argv {
		if most <= 0 {
			break
		}
		short := word[:min(len(word), most)]
		p.Argv, most = append(p.Argv, strings.ToValidUTF8(short, "")), most-len(word)-1
	}
	if !slices.Equal(p.Argv, argv) {
		p.Cut = true
		p.line = lineOf(p.Exec, p.line)
	}
}
