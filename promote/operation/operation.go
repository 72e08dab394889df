// Package operation keeps the chain of an airlock's operations on the user's branch: each landing, and each undo, redo and
// revert of one.
//
// The newest operation is the commit that refs/airlock/<id>/ops names. Its first parent is the operation before it. Its
// other parents are the branch before and after the operation, and the notes that the operation wrote, so that git gc
// keeps all of them. The ref moves in the transaction that moves the branch. The chain therefore records what happened, even
// if the program is killed.
package operation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// Ref is the name of the chain's ref below the refs of an airlock.
const Ref = "ops"

// Kind is the kind of an operation.
type Kind string

// The kinds.
const (
	Land   Kind = "land"
	Undo   Kind = "undo"
	Redo   Kind = "redo"
	Revert Kind = "revert" // a commit that takes a landing back
)

// Operation is a move of the user's branch.
type Operation struct {
	ID       gitops.OID `json:"-"` // of the commit in the chain
	Previous gitops.OID `json:"-"` // the operation before it; empty for the first one

	Number int            `json:"number"` // from 1
	Kind   Kind           `json:"kind"`
	Of     int            `json:"of,omitempty"` // the number of the landing that was undone, redone or reverted
	At     time.Time      `json:"at"`
	Branch gitops.AnyName `json:"branch"` // full ref name
	Before gitops.OID     `json:"before"` // the branch
	After  gitops.OID     `json:"after"`
	// PromotedBefore is the airlock's ref promoted before a landing. After it, the ref equals the branch.
	PromotedBefore gitops.OID         `json:"promotedBefore,omitempty"`
	Notes          []gitops.RefUpdate `json:"notes,omitempty"`  // of notes refs
	Landed         []ledger.Pair      `json:"landed,omitempty"` // by a landing, oldest first
}

// limit bounds the size of an operation in bytes.
const limit = 16 << 20

// Commit returns the commit that stores the operation. tree is the tree of After, and who its author, without a date.
func (o Operation) Commit(tree gitops.OID, who string) (gitops.Commit, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return gitops.Commit{}, err
	}
	ident := fmt.Sprintf("%s %d +0000", who, o.At.Unix())
	c := gitops.Commit{Tree: tree, Author: ident, Committer: ident, Message: fmt.Appendf(nil, "%s\n\n%s\n", o.Title(), body)}
	if o.Previous != "" {
		c.Parents = append(c.Parents, o.Previous)
	}
	c.Parents = append(c.Parents, o.Before)
	if o.After != o.Before {
		c.Parents = append(c.Parents, o.After)
	}
	for _, u := range o.Notes {
		if u.New != "" {
			c.Parents = append(c.Parents, u.New)
		}
	}
	return c, nil
}

// Title returns what the operation did, in words.
func (o Operation) Title() string {
	switch {
	case o.Kind != Land:
		return fmt.Sprintf("%s operation %d", o.Kind, o.Of)
	case len(o.Landed) == 1:
		return "land 1 commit"
	}
	return fmt.Sprintf("land %d commits", len(o.Landed))
}

// Parse reads the commit of an operation.
func Parse(id gitops.OID, c gitops.Commit) (Operation, error) {
	var o Operation
	_, body, found := bytes.Cut(c.Message, []byte("\n\n"))
	if !found || len(body) > limit {
		return o, fmt.Errorf("commit %s is not an operation", id)
	}
	if err := json.Unmarshal(body, &o); err != nil {
		return o, fmt.Errorf("read operation %s: %w", id, err)
	}
	ids := []gitops.OID{o.Before, o.After}
	for _, u := range o.Notes {
		ids = append(ids, u.Old, u.New)
	}
	for _, name := range append(ids, o.PromotedBefore) {
		if _, err := gitops.ParseOID(string(name)); err != nil && name != "" || o.Before == "" || o.After == "" {
			return o, fmt.Errorf("read operation %s: %q is not an object name", id, gitops.Text(string(name)))
		}
	}
	o.ID = id
	if o.Number > 1 && len(c.Parents) > 0 {
		o.Previous = c.Parents[0]
	}
	return o, nil
}

// Chain lists the operations of an airlock, oldest first.
type Chain []Operation

var (
	// ErrNothing reports that no operation can be undone or redone.
	ErrNothing = errors.New("there is nothing to undo or redo")
	// ErrUnknown reports a number that no operation has.
	ErrUnknown = errors.New("no such operation")
)

// missing is an [ErrNothing] with a message of its own.
type missing string

func (m missing) Error() string { return string(m) }

// Unwrap implements the interface of [errors.Is].
func (m missing) Unwrap() error { return ErrNothing }

// Landings returns the landings that stand (done), and those that can be redone (undone), each in the order in which they were done or undone.
// After another landing or a revert, a landing that was undone before cannot be redone any more.
func (c Chain) Landings() (done, undone []Operation) {
	for _, o := range c {
		last := len(done) - 1
		switch o.Kind {
		case Land:
			done, undone = append(done, o), nil
		case Revert:
			done, undone = slices.DeleteFunc(done, func(l Operation) bool { return l.Number == o.Of }), nil
		case Undo:
			if last >= 0 && done[last].Number == o.Of {
				done, undone = done[:last], append(undone, done[last])
			}
		case Redo:
			if last := len(undone) - 1; last >= 0 && undone[last].Number == o.Of {
				done, undone = append(done, undone[last]), undone[:last]
			}
		}
	}
	return done, undone
}

// Find returns the landing with a number, or the newest landing if the number is 0. If there is no such landing that stands, the error is
// [ErrNothing] or [ErrUnknown]. newest reports that no later landing stands.
func (c Chain) Find(number int) (o Operation, newest bool, err error) {
	done, _ := c.Landings()
	for i, o := range slices.Backward(done) {
		if number == 0 || number == o.Number {
			return o, i == len(done)-1, nil
		}
	}
	switch {
	case number == 0:
		err = missing("nothing to undo: no landing stands")
	case slices.ContainsFunc(c, func(o Operation) bool { return o.Number == number }):
		err = missing(fmt.Sprintf("operation %d is not a landing that stands", number))
	default:
		err = fmt.Errorf("%w: %d", ErrUnknown, number)
	}
	return Operation{}, false, err
}

// ToRedo returns the landing that a redo makes again.
func (c Chain) ToRedo() (Operation, error) {
	_, undone := c.Landings()
	if len(undone) == 0 {
		return Operation{}, missing("nothing to redo: no landing was undone last")
	}
	return undone[len(undone)-1], nil
}

// UndoOf returns the last undo of a landing, or a zero operation if there is none.
func (c Chain) UndoOf(landing Operation) Operation {
	for _, o := range slices.Backward(c) {
		if o.Kind == Undo && o.Of == landing.Number {
			return o
		}
	}
	return Operation{}
}

// Next returns an operation that follows last, or the first one if last is zero.
func Next(last, o Operation) Operation {
	o.Previous, o.Number = last.ID, last.Number+1
	return o
}

// Append makes the commit of an operation. tip is the newest operation before it, or empty. who is the author of the commit. The caller must
// give the commit to the repository and move the ref: then it is the tip of the chain.
func Append(ctx context.Context, b *quarantine.Bridge, inspector *quarantine.Inspector, tip gitops.OID, o Operation, who string) (gitops.OID, error) {
	var last Operation
	if tip != "" {
		var err error
		if last, err = read(ctx, inspector, tip); err != nil {
			return "", err
		}
	}
	after, err := inspector.Commit(ctx, o.After)
	if err != nil {
		return "", err
	}
	c, err := Next(last, o).Commit(after.Tree, who)
	return b.Make("commit", c.Bytes()), err
}

// Read returns the chain whose newest operation is tip. If tip is empty, so is the chain.
func Read(ctx context.Context, inspector *quarantine.Inspector, tip gitops.OID) (Chain, error) {
	var c Chain
	for id := tip; id != ""; {
		o, err := read(ctx, inspector, id)
		if err != nil {
			return nil, err
		}
		if len(c) > 0 && o.Number >= c[len(c)-1].Number {
			return nil, fmt.Errorf("read operation %s: its number %d is not below the next one's", id, o.Number)
		}
		c, id = append(c, o), o.Previous
	}
	slices.Reverse(c)
	return c, nil
}

func read(ctx context.Context, inspector *quarantine.Inspector, id gitops.OID) (Operation, error) {
	c, err := inspector.Commit(ctx, id)
	if err != nil {
		return Operation{}, fmt.Errorf("read operation %s: %w", id, err)
	}
	return Parse(id, c)
}
