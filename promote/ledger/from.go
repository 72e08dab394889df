package ledger

import (
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// LineOf returns the line of an inner branch or revision that the user promotes in the place of main: the name of the branch, also if the
// revision is an older commit of it.
func LineOf(revision string) string {
	name := strings.TrimPrefix(strings.TrimPrefix(revision, "refs/"), "heads/")
	if i := strings.IndexAny(name, "~^:"); i > 0 {
		name = name[:i]
	}
	if i := strings.Index(name, "@{"); i > 0 {
		name = name[:i]
	}
	return name
}

// OffMain reports whether the pair was landed from another line than main, and main has not had the inner commit since.
func (p Pair) OffMain() bool { return p.From != "" && !p.Joined }

// OffMain returns the landed pairs of other lines than main whose inner commits main has not had, oldest first.
func (l *Ledger) OffMain() []Pair {
	if !l.lines {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(l.Landed), func(p Pair) bool { return !p.OffMain() })
}

// OnMain returns the outcome as a cycle of main starts from it that does not read the workspace: its tip is the one that the last cycle has seen.
func (o Outcome) OnMain() Outcome {
	if o.Main != "" {
		o.Inner, o.From, o.Main = o.Main, "", ""
	}
	return o
}

// DroppedOf counts the new commits of a first-parent history, oldest commit first, that the user leaves out.
func (l *Ledger) DroppedOf(line []gitops.OID, d Decisions) (n int) {
	for _, inner := range slices.Backward(line) {
		if l.Has(inner) {
			break
		}
		if d.DropOf(inner) != nil {
			n++
		}
	}
	return n
}

// HasLines reports whether a commit has landed from another line than main.
func (l *Ledger) HasLines() bool { return l.lines }

// Join records that main has had landed commits of other lines. The next [Ledger.Save] makes it durable.
func (l *Ledger) Join(inner []gitops.OID) {
	if len(inner) == 0 {
		return
	}
	joined := gitops.SetOf(inner...)
	l.Landed = slices.Clone(l.Landed)
	for i, p := range l.Landed {
		if joined[p.Inner] && p.OffMain() {
			l.Landed[i].Joined = true
			l.pairs[p.Inner] = l.Landed[i]
		}
	}
	l.stored, l.whole = 0, false
}

// LastOn returns the pair from which the next commits of another line than main count, if found is the newest commit of that line that is not new:
// the pair of found, or the base, with the newest landed commit as its image.
func (l *Ledger) LastOn(found gitops.OID) Pair {
	p, there := l.pairs[found]
	if !there {
		p = l.Base
	}
	if n := len(l.Landed); n > 0 && l.Landed[n-1].Outer != p.Outer {
		p.Outer, p.Merged = l.Landed[n-1].Outer, true
	}
	return p
}
