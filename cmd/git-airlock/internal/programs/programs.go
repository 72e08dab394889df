// Package programs reads the record of the programs that ran in an airlock's prison, and arranges it for people.
package programs

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/watch/execs"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/words"
)

// Selection selects records.
type Selection struct {
	Top   bool   // only what the launched command has started itself
	Since string // only what started after this commit of the outer repository was made; empty for all
}

// Read returns the selected records of an airlock, oldest first, and the number of records that are missing.
func Read(ctx context.Context, p prisons.Prisons, r airlock.Record, q Selection) (found []execs.Record, missing uint64, err error) {
	from, err := q.from(ctx, p.Repo)
	if err != nil {
		return nil, 0, err
	}
	dir := p.Spec(r).Dir
	if err := execs.Complete(ctx, dir); err != nil {
		return nil, 0, err
	}
	all, err := execs.Read(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, notRecorded(r)
	}
	if err != nil {
		return nil, 0, err
	}
	if n := len(all); n > 0 {
		missing = all[n-1].Seq - uint64(n)
	}
	return q.of(all, from), missing, nil
}

// from returns the time of the commit since which records are selected.
func (q Selection) from(ctx context.Context, repo *gitops.Repository) (from time.Time, err error) {
	if q.Since == "" {
		return from, nil
	}
	commit, err := repo.Commit(ctx, q.Since)
	if err != nil {
		return from, err
	}
	return repo.CommitTime(ctx, commit)
}

func (q Selection) of(all []execs.Record, from time.Time) []execs.Record {
	return slices.DeleteFunc(all, func(r execs.Record) bool { return q.Top && !r.Top || r.Time.Before(from) })
}

// Recorded returns the selected programs in the record of a run, and the number of lines that are missing between them.
func Recorded(ctx context.Context, repo *gitops.Repository, run record.Run, q Selection) (found []execs.Record, missing uint64, err error) {
	from, err := q.from(ctx, repo)
	if err != nil {
		return nil, 0, err
	}
	all, err := run.Execs()
	if err != nil {
		return nil, 0, err
	}
	// The record has a program where its line was first seen, which can be after those that it started.
	slices.SortStableFunc(all, func(a, b record.Exec) int { return cmp.Compare(a.Seq, b.Seq) })
	for i, e := range all {
		r := execs.Record{Time: e.Time, Seq: e.Seq, PID: e.PID, PPID: e.PPID, CWD: e.Cwd, Path: e.Path, Argv: e.Argv, Exit: e.Exit, MS: e.Millis,
			Top: e.Top, Deny: e.Deny, Disputed: e.Disputed, Cut: e.Cut}
		if e.Exe != "" {
			r.Exe = &all[i].Exe
		}
		found = append(found, r)
	}
	if n := len(all); n > 0 && all[n-1].Seq-all[0].Seq > uint64(n-1) {
		missing = all[n-1].Seq - all[0].Seq - uint64(n-1)
	}
	missing = max(missing, run.Manifest.Unlisted.Programs) // without those at the ends, in a record of an earlier version
	return q.of(found, from), missing, nil
}

// notRecorded is the error for an airlock without a record.
func notRecorded(r airlock.Record) error {
	for _, w := range r.Isolation.Weaker {
		if w.Kind == string(prison.NoPrograms) {
			return errors.New(w.Text)
		}
	}
	return environment.Advise(errors.New("no program was recorded: airlock.exec.record is false, or the prison has not started since it is recorded"),
		"git airlock stop && git airlock start")
}

// Row is a record with its depth in a tree.
type Row struct {
	execs.Record
	Depth int
}

// Tree arranges records below those of their parents. A program that replaced another one in its process is below that one.
func Tree(records []execs.Record) []Row {
	parent := make([]int, len(records))
	last := map[int]int{} // the newest record of a process
	for i, r := range records {
		parent[i] = -1
		before, again := last[r.PID]
		if again && !over(records[before], r) {
			parent[i] = before
		} else if at, known := last[r.PPID]; known && r.PPID != r.PID {
			parent[i] = at
		}
		if r.Ran() {
			last[r.PID] = i
		}
	}
	children := make([][]int, len(records)+1)
	for i, p := range parent {
		children[p+1] = append(children[p+1], i)
	}
	var rows []Row
	type place struct{ record, depth int }
	var stack []place
	push := func(of, depth int) {
		for _, c := range slices.Backward(children[of+1]) {
			stack = append(stack, place{c, depth})
		}
	}
	push(-1, 0)
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		rows = append(rows, Row{records[at.record], at.depth})
		push(at.record, at.depth+1)
	}
	return rows
}

// over reports whether a process had ended when another record was made. Numbers of processes are used again.
func over(before, now execs.Record) bool {
	const tolerance = 5 * time.Millisecond // times are rounded down
	return before.PPID != now.PPID && now.PPID != 1 ||
		before.MS != nil && before.Time.Add(time.Duration(*before.MS)*time.Millisecond+tolerance).Before(now.Time)
}

// Command returns the command line of a record as words for a shell, escaped. The path is added if it is not the first word.
func Command(r execs.Record) string {
	argv := make([]string, 0, len(r.Argv)+1)
	if len(r.Argv) == 0 || filepath.Base(r.Argv[0]) != filepath.Base(r.Path) {
		argv = append(argv, r.Path+":")
	}
	argv = append(argv, r.Argv...)
	for i, word := range argv {
		argv[i] = words.ShellQuote(word)
	}
	line := gitops.Text(strings.Join(argv, " ")).String()
	if r.Cut {
		line += " ..."
	}
	return line
}

// Shown returns a record for a document, with all its text escaped.
func Shown(r execs.Record) execs.Record {
	shown := func(text string) string { return gitops.Text(text).String() }
	r.Path, r.CWD, r.Argv = shown(r.Path), shown(r.CWD), slices.Clone(r.Argv)
	for i := range r.Argv {
		r.Argv[i] = shown(r.Argv[i])
	}
	for _, p := range []**string{&r.Exe, &r.Deny} {
		if *p != nil {
			text := shown(**p)
			*p = &text
		}
	}
	if r.Argv == nil {
		r.Argv = []string{}
	}
	return r
}

// WithoutTries leaves out the failed calls with which a shell looked for a program in the folders of PATH. A call is left out if the same
// process made the next call for the same command.
func WithoutTries(records []execs.Record) (kept []execs.Record) {
	next := map[int]execs.Record{} // by process
	for _, r := range slices.Backward(records) {
		after, again := next[r.PID]
		next[r.PID] = r
		if again && !r.Ran() && path.Base(r.Path) == path.Base(after.Path) && path.Dir(r.Path) != path.Dir(after.Path) &&
			slices.Equal(r.Argv, after.Argv) && r.CWD == after.CWD && (r.Deny == nil || after.Deny != nil) {
			continue
		}
		kept = append(kept, r)
	}
	slices.Reverse(kept)
	return kept
}
