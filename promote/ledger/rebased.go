package ledger

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/durable"
)

// rebasedKept bounds the number of rebased forms of landed commits that are stored.
const rebasedKept = 10_000

// rebasedFile returns the name of the file with the rebased forms of landed commits, in the form of the ledger's entries, oldest first.
func rebasedFile(dir string) string { return filepath.Join(dir, "rebased") }

// Rebased is a commit that the agent has rebased after it landed, so that nothing of it lands again.
type Rebased struct {
	Inner   gitops.OID `json:"inner"`   // the new commit
	Commit  gitops.OID `json:"commit"`  // the landed outer commit
	Subject string     `json:"subject"` // escaped
}

// AddRebased stores pairs of rebased inner commits and the landed outer commits that are their images. From now on they count as
// landed while the outer commits do: an undo of the landing, for example, makes them new commits.
func (l *Ledger) AddRebased(forms []Pair) error {
	l.rebased = append(l.rebased, forms...)
	l.rebased = l.rebased[max(0, len(l.rebased)-rebasedKept):]
	l.indexRebased()
	var text strings.Builder
	for _, p := range l.rebased {
		text.WriteString(p.entry() + "\n")
	}
	return durable.WriteFile(rebasedFile(filepath.Dir(l.file)), []byte(text.String()), 0o600)
}

// readRebased replaces the rebased forms by those in the host state dir.
func (l *Ledger) readRebased(dir string) error {
	for id := range l.forms {
		if l.IsRebased(id) {
			delete(l.pairs, id)
		}
	}
	l.rebased, l.forms = nil, nil
	content, err := os.ReadFile(rebasedFile(dir))
	if err != nil {
		return gitops.Unless(err, os.ErrNotExist)
	}
	l.rebased, _, err = parse(string(content))
	l.indexRebased()
	return err
}

func (l *Ledger) indexRebased() {
	if l.forms == nil {
		l.forms = map[gitops.OID]gitops.OID{}
	}
	for _, p := range l.rebased {
		if _, there := l.pairs[p.Inner]; !there && l.outer[p.Outer] {
			l.pairs[p.Inner], l.forms[p.Inner] = p, p.Outer
		}
	}
}

// IsRebased reports whether an inner commit counts as landed because it is a rebased form of a landed one.
func (l *Ledger) IsRebased(inner gitops.OID) bool {
	p, there := l.pairs[inner]
	return there && l.forms[inner] == p.Outer
}

// Rebased returns the inner commits that count as landed because they are rebased forms of landed ones, oldest first.
func (l *Ledger) Rebased() (inner []gitops.OID) {
	for _, p := range l.rebased {
		if l.IsRebased(p.Inner) {
			inner = append(inner, p.Inner)
		}
	}
	return inner
}

// FormsOf returns the rebased inner commits of outer commits, also if these are not landed at present.
func (l *Ledger) FormsOf(outer ...gitops.OID) (inner []gitops.OID) {
	for _, p := range l.rebased {
		if slices.Contains(outer, p.Outer) {
			inner = append(inner, p.Inner)
		}
	}
	return inner
}

// Originals returns landed inner commits that reach all those of which the agent has other forms. The agent's main does not have them any more,
// but another ref may. The first one that also reaches a commit that was left out without a decision of the user is not listed, and no later one,
// because the commit without a decision may be on no other ref either.
func (l *Ledger) Originals(decided Decisions) (inner []gitops.OID) {
	if len(l.rebased) == 0 {
		return nil
	}
	images := gitops.Set[gitops.OID]{}
	for _, p := range l.rebased {
		images.Add(p.Outer)
	}
	for _, p := range l.Landed {
		if l.leavesOpen(p, decided) {
			break
		}
		if images[p.Outer] {
			inner = append(inner, p.Inner)
		}
	}
	return inner[max(0, len(inner)-tipsKept):]
}

// OtherForms returns the landed pairs with the images of some inner commits, the pairs of these commits included, if any landed commit was rebased.
func (l *Ledger) OtherForms(inner []gitops.OID) []Pair {
	if len(l.rebased) == 0 {
		return nil
	}
	images := gitops.Set[gitops.OID]{}
	for _, id := range inner {
		if p, there := l.pairs[id]; there {
			images.Add(p.Outer)
		}
	}
	return slices.DeleteFunc(slices.Concat(l.Landed, l.rebased), func(p Pair) bool { return !images[p.Outer] })
}

// Following returns the pair that landed next after an outer commit or after the base, if there is one.
func (l *Ledger) Following(outer gitops.OID) (p Pair, there bool) {
	at := slices.IndexFunc(l.Landed, func(p Pair) bool { return p.Outer == outer })
	if at+1 >= len(l.Landed) || at < 0 && outer != l.Base.Outer {
		return p, false
	}
	return l.Landed[at+1], true
}
