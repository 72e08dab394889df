package attest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/checks"
	"github.com/git-airlock/git-airlock/promote/evidence"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// Attester makes the statements of one airlock.
type Attester struct {
	Repo   *gitops.Repository
	Store  airlock.Store
	Record airlock.Record
	Config gitops.Config
	Who    string // the author of changes of notes: name and address
	Now    func() time.Time
	// Kernel returns what the kernel or the engine grants the prison, by name. May be nil.
	Kernel func() map[string]string
	// Runs reads the runs of an airlock. May be nil.
	Runs    func(context.Context, airlock.Record) (Runs, error)
	Version string // of this program
	// Say prints a message for the user. Required.
	Say func(format string, values ...any)
	// Begin starts a line that shows the progress of a step, see step, until end is called. all is 0 if it is not known. Required.
	Begin func(what string) (step func(what string, done, all int), end func())

	userUntil time.Time // set by Rest, which uses the user's key only until then
}

// Runs returns the runs in which a commit landed, given the time of the landing.
type Runs func(commit gitops.OID, landed time.Time) []evidence.Run

const (
	// patience bounds the wait for a running cycle, and the closing of a session.
	patience = 5 * time.Second
	// userTime bounds how long the user's key signs for Rest, which has 4 seconds.
	userTime = 2 * time.Second
)

// Landed makes a statement about each landed commit that has none, as a [Backlog] does.
func (a Attester) Landed(ctx context.Context) error {
	return (&Backlog{Attester: a}).all(ctx)
}

// Rest makes the missing statements before an airlock is removed. Nobody can make them later, so a key of the session signs if the user's
// key does not sign quickly.
func (a Attester) Rest(ctx context.Context) error {
	if a.none() {
		return nil
	}
	a.userUntil = a.Now().Add(userTime)
	return a.Landed(ctx)
}

// Close makes the closing statement of each key that can still sign. The session gets no statements after it. A session without a landed
// commit gets no closing statement.
func (a Attester) Close(ctx context.Context) error {
	if a.none() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return a.locked(ctx, func(s *state) error {
		for _, key := range slices.Sorted(maps.Keys(s.Chains)) {
			if err := a.close(ctx, s, key); errors.Is(err, gitops.ErrRefMoved) || ctx.Err() != nil {
				return err
			} else if err != nil {
				a.Say("the statements of %s stay open: %v", key, err)
			}
		}
		return nil
	})
}

// none reports whether the airlock has landed nothing and made no statement.
func (a Attester) none() bool {
	_, none := os.Lstat(stateFile(a.dir()))
	landed, err := ledger.TotalLanded(a.dir())
	return err == nil && landed == 0 && errors.Is(none, fs.ErrNotExist)
}

// locked calls do with the state. It holds the lock of cycles meanwhile, because do hands objects over, as a landing does. If another
// airlock has written notes meanwhile, locked reads the state again and calls do again.
func (a Attester) locked(ctx context.Context, do func(*state) error) error {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	unlock, err := a.Store.LockFile(waiting, a.Record.ID, promote.CycleLock)
	if err != nil {
		return err
	}
	defer unlock()
	return gitops.RetryMoved(ctx, func() error {
		s, err := readState(a.dir())
		if err != nil {
			return err
		}
		return do(s)
	})
}

func (a Attester) dir() string { return a.Store.Dir(a.Record.ID) }

// attest makes the statements about some commits and writes them in one change of the notes.
func (a Attester) attest(ctx context.Context, s *state, commits []gitops.Noted, facts *facts) error {
	known, tip, err := a.around(ctx, commits)
	if err != nil {
		return err
	}
	patches, err := a.patches(ctx, idsOf(commits))
	if err != nil {
		return err
	}
	runs := Runs(func(gitops.OID, time.Time) []evidence.Run { return nil })
	if a.Runs != nil {
		if runs, err = a.Runs(ctx, a.Record); err != nil {
			return err
		}
	}
	here, err := checks.Here(a.Repo)
	if err != nil {
		return err
	}
	notes := map[gitops.OID]string{}
	for _, c := range commits {
		if adopted, err := a.adopt(ctx, s, c.ID, c.Tree, known[c.ID]); err != nil {
			return err
		} else if adopted {
			continue
		}
		landed := a.describe(c.ID, facts.of(c.ID), here[c.Tree], patches[c.ID], runs)
		line, err := a.sign(ctx, s, c.ID, c.Tree, func(p *evidence.Predicate) { p.Landed = &landed })
		if err != nil {
			return err
		}
		add(notes, known, c.ID, c.Tree, line)
	}
	return a.write(ctx, s, tip, noteList(notes))
}

// patchTime bounds the time for the patch-ids of a group, because a cycle may be waiting.
const patchTime = time.Second

// patches returns the patch-ids of commits with patches that are not large.
func (a Attester) patches(ctx context.Context, commits []gitops.OID) (map[gitops.OID]string, error) {
	bounded, cancel := context.WithTimeout(ctx, patchTime)
	defer cancel()
	ids, err := a.Repo.VerbatimPatchIDs(bounded, commits, evidence.PatchLimit)
	if bounded.Err() != nil {
		err = ctx.Err()
	}
	return ids, err
}

// linesOnTree bounds the statements in the note of a tree, since any number of commits can have the same tree. The note of each commit has
// its statement in any case.
const linesOnTree = 16

// add adds a line to the new notes on a commit and on its tree. known has the present notes.
func add(notes, known map[gitops.OID]string, commit, tree gitops.OID, line string) {
	for _, on := range []gitops.OID{commit, tree} {
		note, begun := notes[on]
		if !begun {
			note = known[on]
		}
		if on == commit || strings.Count(note, "\n") < linesOnTree {
			notes[on] = evidence.AddLine(note, line)
		}
	}
}

// close makes the closing statement of one key's statements, on the last commit that they are about.
func (a Attester) close(ctx context.Context, s *state, key string) error {
	last := s.Chains[key]
	if last.Closed {
		return nil
	}
	known, tips, err := a.Repo.NotesOn(ctx, map[string][]gitops.OID{evidence.NotesRef: {last.Commit, last.Tree}})
	if err == nil {
		_, err = a.adopt(ctx, s, last.Commit, last.Tree, known[evidence.NotesRef][last.Commit])
	}
	if err != nil || s.Chains[key].Closed {
		return err
	}
	kind, err := a.kindOf(s, key)
	if err != nil {
		return err
	}
	if kind == "" {
		a.Say("the statements of %s stay open: you have another key now", key)
		return nil
	}
	closed := &evidence.Closed{Count: last.N, Head: last.Head}
	line, err := a.signWith(ctx, s, kind, key, last.Commit, last.Tree, func(p *evidence.Predicate) { p.Closed = closed })
	if err != nil {
		return err
	}
	notes := map[gitops.OID]string{}
	add(notes, known[evidence.NotesRef], last.Commit, last.Tree, line)
	return a.write(ctx, s, tips[evidence.NotesRef], noteList(notes))
}

// adopt adds the statements of this session in the note of a commit to the state. A process that was killed before it wrote its state has left them.
// found reports whether the commit has a statement. Other people may have added lines to the note, also copies of this session's statements about
// other commits, so only lines about this commit with a key of this session count.
func (a Attester) adopt(ctx context.Context, s *state, commit, tree gitops.OID, note string) (found bool, err error) {
	if note == "" {
		return false, nil
	}
	_, mine, err := a.key(ctx, s)
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(note) {
		e, err := evidence.Open([]byte(strings.TrimSuffix(line, "\n")))
		if of := e.Statement; err != nil || of.Predicate.Session != a.Record.Session || of.Commit() != commit || of.Tree() != tree {
			continue
		}
		key := e.Fingerprint()
		if last, signed := s.Chains[key]; (signed || key == mine) && e.Verify() == nil {
			p := e.Statement.Predicate
			found = found || p.Landed != nil
			if p.N == last.N+1 && p.Previous == last.Head {
				s.next(key, link{N: p.N, Head: e.Digest, Commit: commit, Tree: tree, Closed: p.Closed != nil})
			}
		}
	}
	return found, nil
}

// write writes the notes and then the state. If the process ends between the two, a later process adopts the statements from the notes.
func (a Attester) write(ctx context.Context, s *state, tip gitops.OID, notes []quarantine.Note) error {
	if len(notes) > 0 {
		if err := a.give(ctx, tip, notes); err != nil {
			return fmt.Errorf("write evidence: %w", err)
		}
	}
	return s.save(a.dir())
}

// give writes the notes in a pack that is kept until the ref has moved. A git gc at the same time could remove loose objects.
func (a Attester) give(ctx context.Context, tip gitops.OID, notes []quarantine.Note) (err error) {
	bridge, err := quarantine.Open(promote.QuarantineDir(a.dir()), a.Record.Format).Bridge(a.Repo, a.Config, filepath.Join(a.dir(), "bridge"))
	if err != nil {
		return err
	}
	inspector := bridge.Inspect(ctx, nil)
	defer func() { err = errors.Join(err, inspector.Close(), bridge.Close()) }()
	drafted, made, err := bridge.DraftNotes(ctx, inspector, tip, a.Who, notes)
	if err != nil || drafted == tip {
		return err
	}
	if err := bridge.Give(ctx, inspector, "", nil, made...); err != nil {
		return err
	}
	if err := a.Repo.UpdateRefs(ctx, "airlock: evidence", gitops.RefUpdate{Ref: evidence.NotesRef, Old: tip, New: drafted}); err != nil {
		return err
	}
	return quarantine.Release(a.Repo, a.dir())
}

// noteList returns the notes, sorted by their objects.
func noteList(notes map[gitops.OID]string) (list []quarantine.Note) {
	for _, on := range slices.Sorted(maps.Keys(notes)) {
		list = append(list, quarantine.Note{Commit: on, Text: notes[on]})
	}
	return list
}

// around reads the statements on commits and on their trees, by object. tip is the commit of notes from which they were read.
func (a Attester) around(ctx context.Context, commits []gitops.Noted) (notes map[gitops.OID]string, tip gitops.OID, err error) {
	on := idsOf(commits)
	for _, c := range commits {
		on = append(on, c.Tree)
	}
	all, tips, err := a.Repo.NotesOn(ctx, map[string][]gitops.OID{evidence.NotesRef: on})
	return all[evidence.NotesRef], tips[evidence.NotesRef], err
}

func idsOf(commits []gitops.Noted) (ids []gitops.OID) {
	for _, c := range commits {
		ids = append(ids, c.ID)
	}
	return ids
}
