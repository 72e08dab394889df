// Package undo takes landings back exactly, makes them again, and reverts them with a commit.
//
// An undo moves the branch from a landed commit back to the commit before the landing, and reverses the landing's changes of other refs in
// the same transaction. Before that, undo writes the verdicts that keep the commits from landing again. These verdicts have no effect on
// commits that have landed, so a kill between the two steps does no harm.
package undo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/land"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/events"
	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/operation"
	"github.com/git-airlock/git-airlock/promote/pause"
	"github.com/git-airlock/git-airlock/promote/review"
	"github.com/git-airlock/git-airlock/words"
)

// Refused reports that the branch cannot be moved exactly now. Nothing has changed.
type Refused struct {
	Message string   // escaped
	Next    []string // commands
}

func (r *Refused) Error() string { return r.Message }

// again repeats an operation that was refused because a ref moved after the operation had read it. It reads all refs again, and refuses by
// itself if they do not allow it any more. The airlocks of other worktrees move the notes refs with each landing.
func again(try func() error) error {
	for end := time.Now().Add(overtaken); ; {
		err := try()
		if _, locked := errors.AsType[*gitops.LockedError](err); locked || !errors.Is(err, gitops.ErrRefMoved) || time.Now().After(end) {
			return err
		}
	}
}

// standing is an airlock in which no cycle runs, with its operations.
type standing struct {
	*promote.Standing
	e     *promote.Engine
	refs  map[string]gitops.OID
	chain operation.Chain
}

func open(ctx context.Context, e *promote.Engine) (s *standing, err error) {
	s = &standing{e: e}
	if s.Standing, err = e.Standing(ctx); err != nil {
		return nil, err
	}
	s.refs, err = e.Repo.Refs(ctx, e.Record.Branch, e.Record.Ref("promoted"), e.Record.Ref("pending"), e.Record.Ref(operation.Ref),
		promote.NotesRef, promote.EgressRef)
	if err == nil {
		s.chain, err = List(ctx, e)
	}
	if err != nil {
		s.Close()
	}
	return s, err
}

// ref returns the value of one of the airlock's refs.
func (s *standing) ref(name string) gitops.OID { return s.refs[s.e.Record.Ref(name)] }

// tip returns the commit of the branch, or a refusal if HEAD is not there.
func (s *standing) tip(ctx context.Context) (gitops.OID, error) {
	tip := s.refs[s.e.Record.Branch]
	holds, err := hold.Positions(ctx, s.e.Repo, s.e.Record, tip, s.ref("promoted"))
	if err == nil && len(holds) > 0 {
		err = &Refused{holds[0].Message, holds[0].Next}
	}
	return tip, err
}

// List returns the operations of an airlock, oldest first. It changes nothing.
func List(ctx context.Context, e *promote.Engine) (operation.Chain, error) {
	tip, err := e.Repo.Ref(ctx, e.Record.Ref(operation.Ref))
	if err != nil {
		return nil, err
	}
	inspector := quarantine.Inspect(ctx, e.Repo.Git)
	defer inspector.Close()
	return operation.Read(ctx, inspector, tip)
}

// Undo takes back the landing with a number, or the newest that stands if number is 0, and returns it. The error is that of [operation.Chain.Find] if
// there is no such landing. It is a *[Refused] if the branch has other commits on top, if a remote has the commits, or if the user has
// changed a path since. A dry run changes nothing.
func Undo(ctx context.Context, e *promote.Engine, number int) (o operation.Operation, err error) {
	err = again(func() (err error) {
		o, err = undo(ctx, e, number)
		number = cmp.Or(o.Number, number) // not a landing of the meantime
		return err
	})
	return o, err
}

func undo(ctx context.Context, e *promote.Engine, number int) (operation.Operation, error) {
	s, err := open(ctx, e)
	if err != nil {
		return operation.Operation{}, err
	}
	defer s.Close()
	o, newest, err := s.chain.Find(number)
	if err != nil {
		return o, err
	}
	if err := s.reversible(ctx, o, newest); err != nil {
		return o, err
	}
	if e.Repo.Dry {
		return o, s.foresee(ctx, o.After, o.Before)
	}
	decisions, err := s.undone(ctx, o)
	if err == nil {
		err = decisions.Write(e.Dir())
	}
	if err != nil {
		return o, err
	}
	back := operation.Operation{Kind: operation.Undo, Of: o.Number, Before: o.After, After: o.Before}
	if err := s.land(ctx, back, o.PromotedBefore, renoted{from: o.Notes, without: slices.Concat(o.Landed, s.Ledger.Tail)}); err != nil {
		return o, errors.Join(err, s.Decisions.Write(e.Dir()))
	}
	return o, s.Ledger.SetTail(nil) // waiting commits will get other outer commits, see [ledger.Ledger.Former]
}

// reversible returns a refusal if the branch cannot be moved back to where it was before a landing.
func (s *standing) reversible(ctx context.Context, o operation.Operation, newest bool) error {
	tip, err := s.tip(ctx)
	if err != nil {
		return err
	}
	revert := fmt.Sprintf("git airlock undo --revert %d", o.Number)
	if !newest || tip != o.After || s.ref("promoted") != o.After {
		tree, err := s.without(ctx, o, tip)
		if _, conflicts := errors.AsType[*Refused](err); err != nil && !conflicts {
			return err
		}
		if err == nil && tree == "" {
			return s.gone(o)
		}
		if !newest {
			later, _, err := s.chain.Find(0)
			return errors.Join(err, &Refused{fmt.Sprintf("operation %d landed after it and must be undone first", later.Number),
				[]string{fmt.Sprintf("git airlock undo %d", later.Number), revert}})
		}
		return &Refused{fmt.Sprintf("%s has moved since operation %d, from %.12s to %.12s", s.e.Record.BranchName(), o.Number, o.After, tip), []string{revert}}
	}
	remote, err := s.remoteWith(ctx, o)
	if err == nil && remote != "" {
		err = &Refused{fmt.Sprintf("%s has commits of operation %d, so that others may have them", gitops.Text(remote), o.Number), []string{revert}}
	}
	return err
}

// remoteWith returns a remote-tracking ref that reaches commits of a landing, or empty.
func (s *standing) remoteWith(ctx context.Context, o operation.Operation) (string, error) {
	remotes, err := s.e.Repo.Refs(ctx, "refs/remotes")
	if err != nil || len(remotes) == 0 {
		return "", err
	}
	own, err := s.e.Repo.Unreached(ctx, []gitops.OID{o.After}, []gitops.OID{o.Before})
	if err != nil {
		return "", err
	}
	left, err := s.e.Repo.Unreached(ctx, []gitops.OID{o.After}, slices.AppendSeq([]gitops.OID{o.Before}, maps.Values(remotes)))
	if err != nil || len(left) == len(own) {
		return "", err
	}
	for _, name := range slices.Sorted(maps.Keys(remotes)) {
		left, err := s.e.Repo.Unreached(ctx, []gitops.OID{o.After}, []gitops.OID{o.Before, remotes[name]})
		if err != nil || len(left) < len(own) {
			return strings.TrimPrefix(name, "refs/remotes/"), err
		}
	}
	return "a remote", nil
}

// undone returns the decisions with the verdict that the commits of a landing are left out.
func (s *standing) undone(ctx context.Context, o operation.Operation) (ledger.Decisions, error) {
	d := s.Decisions
	pairs := withForms(s.Ledger, o.Landed)
	landed := ledger.Inners(pairs)
	all, err := s.Inside.About(ctx, landed...)
	if err != nil {
		return d, err
	}
	for i, p := range pairs {
		r := all[i]
		parent, err := s.Inside.Parent(ctx, p.Inner)
		if err != nil {
			return d, err
		}
		r.Verdict = review.Verdict{Word: review.Undone, By: s.Settings.User.String(), At: ledger.Timestamp(s.Now), Inner: p.Inner, Commit: p.Outer,
			Reason: fmt.Sprintf("operation %d was undone", o.Number)}
		if before := d.ReviewOf(p.Inner); before != nil {
			r.Number = before.Number // approve removes its ref
		}
		d = d.Review(r, parent)
	}
	// The user may reject a commit by its number before a review lists it. If the numbers cannot be stored, the review gives them.
	if n, err := ledger.ReadNumbers(s.e.Dir()); err == nil && n.Give(landed) && !s.e.Repo.Dry {
		_ = n.Write(s.e.Dir())
	}
	return d, nil
}

// withForms returns landed pairs, and those of the commits into which the agent has rebased them.
func withForms(l *ledger.Ledger, landed []ledger.Pair) (all []ledger.Pair) {
	for _, p := range landed {
		all = append(all, p)
		for _, form := range l.FormsOf(p.Outer) {
			all = append(all, ledger.Pair{Inner: form, Outer: p.Outer})
		}
	}
	return all
}

// Redo makes the landing that was undone last once more, and returns it. The error is [operation.ErrNothing] if no landing can be redone, and
// a *[Refused] if the branch has moved since, if the user has rejected one of the commits since, or if the user's files are in the way.
func Redo(ctx context.Context, e *promote.Engine) (o operation.Operation, err error) {
	err = again(func() (err error) {
		o, err = redo(ctx, e)
		return err
	})
	return o, err
}

func redo(ctx context.Context, e *promote.Engine) (operation.Operation, error) {
	s, err := open(ctx, e)
	if err != nil {
		return operation.Operation{}, err
	}
	defer s.Close()
	o, err := s.chain.ToRedo()
	if err != nil {
		return o, err
	}
	tip, err := s.tip(ctx)
	if err != nil {
		return o, err
	}
	if tip != o.Before || s.ref("promoted") != o.PromotedBefore {
		return o, &Refused{fmt.Sprintf("%s has moved since operation %d was undone, from %.12s to %.12s", s.e.Record.BranchName(), o.Number, o.Before, tip),
			s.approvals(o)}
	}
	if err := s.unwanted(o); err != nil {
		return o, err
	}
	if e.Repo.Dry {
		return o, s.foresee(ctx, o.Before, o.After)
	}
	waiting := s.Ledger.Tail
	if err := errors.Join(s.Ledger.SetTail(o.Landed), s.Ledger.Save()); err != nil { // counts once the ref promoted is at its end
		return o, err
	}
	forward := operation.Operation{Kind: operation.Redo, Of: o.Number, Before: o.Before, After: o.After}
	notes := renoted{from: s.chain.UndoOf(o).Notes, without: waiting, with: o.Landed}
	for _, u := range o.Notes {
		notes.like = append(notes.like, u.New)
	}
	if err := s.land(ctx, forward, o.After, notes); err != nil {
		return o, errors.Join(err, s.Ledger.SetTail(waiting), s.Ledger.Save())
	}
	for _, p := range withForms(s.Ledger, o.Landed) {
		if r := s.Decisions.ReviewOf(p.Inner); r != nil && r.Word == review.Undone {
			s.Decisions = s.Decisions.Forget(p.Inner)
		}
	}
	return o, s.Decisions.Write(e.Dir())
}

// unwanted returns a refusal if the user has rejected a commit of an undone landing since, or waits for its fix.
func (s *standing) unwanted(o operation.Operation) error {
	var named []string
	for _, p := range o.Landed {
		if r := s.Decisions.ReviewOf(p.Inner); r != nil && against(r.Word) {
			named = append(named, fmt.Sprintf("%.12s (%s)", p.Outer, words.Shorten(r.Subject, subject)))
		}
	}
	if len(named) == 0 {
		return nil
	}
	list := strings.Join(named[:min(len(named), pathsShown)], ", ")
	if more := len(named) - pathsShown; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return &Refused{fmt.Sprintf("you have rejected commits of operation %d, or asked for a fix, since it was undone: %s", o.Number, list), s.approvals(o)}
}

// subject bounds the characters of a subject in a message.
const subject = 60

func against(w review.Word) bool { return w == review.Reject || w == review.Fix }

// approvals returns the commands that land the commits of an undone landing which the user wants, and which have not landed.
func (s *standing) approvals(o operation.Operation) []string {
	numbers, _ := ledger.ReadNumbers(s.e.Dir()) // without a number, the commit is named
	approve := ""
	for _, p := range o.Landed {
		if r := s.Decisions.ReviewOf(p.Inner); s.Ledger.Has(p.Inner) || r != nil && against(r.Word) {
			continue
		}
		if n := numbers.Of[p.Inner]; n > 0 {
			approve += fmt.Sprintf(" %d", n)
		} else {
			approve += fmt.Sprintf(" %.12s", p.Outer)
		}
	}
	if approve == "" {
		return []string{"git airlock review"}
	}
	return []string{"git airlock review", "git airlock approve" + approve}
}

// land moves the branch with the user's files, and the airlock's refs, and records the operation. If the ref promoted moves, land removes the
// ref pending, and the next cycle builds the pending commits again.
func (s *standing) land(ctx context.Context, o operation.Operation, promoted gitops.OID, notes renoted) error {
	r := s.e.Record
	o.At, o.Branch = ledger.Timestamp(s.Now), gitops.AnyName(r.Branch)
	bridge, inspector, err := s.Bridge(ctx)
	if err != nil {
		return err
	}
	var made []gitops.OID
	if o.Notes, made, err = s.updates(ctx, bridge, inspector, o, notes); err != nil {
		return err
	}
	op, err := operation.Append(ctx, bridge, inspector, s.ref(operation.Ref), o, s.Settings.User.String())
	if err == nil {
		err = bridge.Give(ctx, inspector, "", nil, append(made, op)...)
	}
	if err != nil {
		return err
	}
	updates := []gitops.RefUpdate{{Ref: r.Ref(operation.Ref), Old: s.ref(operation.Ref), New: op}}
	if before := s.ref("promoted"); before != promoted {
		updates = append(updates, gitops.RefUpdate{Ref: r.Ref("promoted"), Old: before, New: promoted})
		if pending := s.ref("pending"); pending != "" {
			updates = append(updates, gitops.RefUpdate{Ref: r.Ref("pending"), Old: pending})
		}
	}
	request := land.Landing{Branch: r.Branch, Old: o.Before, New: o.After, First: o.Notes, Refs: updates,
		Message: fmt.Sprintf("airlock: %s", o.Title()), Begun: r.Base, Dir: s.e.Dir(), Inspector: inspector}
	for end := s.Now.Add(patience); ; time.Sleep(tryPeriod) {
		if err = land.Land(ctx, s.e.Repo, request); err == nil {
			s.count(promoted)
			events.Moved(s.e.Dir(), r.Session, o)
			return nil
		}
		if time.Now().After(end) || !passes(err) || (pause.Command{}).After(err, time.Now()).Outlasts() {
			return s.refusal(ctx, err)
		}
	}
}

// count stores the number of landed commits when promoted is the last one. Commands say how many commits have landed since. An error does no harm,
// because the next cycle counts again.
func (s *standing) count(promoted gitops.OID) {
	l, err := ledger.Read(s.e.Dir(), s.Ledger.Base, promoted, "")
	if err != nil {
		return
	}
	if o, err := ledger.ReadOutcome(s.e.Dir()); err == nil {
		o.Total = len(l.Landed)
		_ = o.Write(s.e.Dir())
	}
}

const (
	patience  = 3 * time.Second // for other git commands to end
	tryPeriod = 50 * time.Millisecond
	overtaken = 20 * time.Second // for other airlocks to leave a moment between two landings
)

// passes reports whether the cause of an error should be over in a moment: another git command.
func passes(err error) bool {
	var locked *gitops.LockedError
	return errors.Is(err, land.ErrUnfinished) || errors.Is(err, land.ErrIndexLocked) || errors.As(err, &locked)
}

// foresee returns a refusal if the user's files do not let the branch move, without moving it.
func (s *standing) foresee(ctx context.Context, from, to gitops.OID) error {
	if _, err := os.Lstat(filepath.Join(s.e.Repo.GitDir, "index.lock")); err == nil {
		return s.refusal(ctx, land.ErrIndexLocked)
	}
	return s.refusal(ctx, land.Check(ctx, s.e.Repo, land.Landing{Branch: s.e.Record.Branch, Old: from, New: to, Begun: s.e.Record.Base, Dir: s.e.Dir()}))
}

// refusal turns an error with a cause outside of the program into a [Refused].
func (s *standing) refusal(ctx context.Context, err error) error {
	var collision *land.CollisionError
	var locked *gitops.LockedError
	switch {
	case errors.As(err, &locked):
		h := hold.RefLocked(locked)
		return &Refused{h.Message, h.Next}
	case errors.Is(err, land.ErrIndexLocked):
		h := hold.IndexLocked(s.e.Repo.GitDir)
		return &Refused{h.Message, h.Next}
	case errors.As(err, &collision):
		h := s.e.Collision(ctx, collision.Paths)
		return &Refused{"it would overwrite changes of yours that are not committed: " + shown(h.Places), h.Next}
	case err != nil && (passes(err) || errors.Is(err, land.ErrElsewhere) || errors.Is(err, gitops.ErrRefMoved)):
		return errors.Join(&Refused{gitops.Text(err.Error()).String(), []string{"git status"}}, err) // see again
	}
	return err
}

// pathsShown bounds the number of paths in a message.
const pathsShown = 10

// shown lists paths for a message, escaped.
func shown(paths []string) string {
	list := gitops.Escaped(paths[:min(len(paths), pathsShown)])
	if more := len(paths) - len(list); more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, ", ")
}
