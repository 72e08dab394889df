package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/durable"
)

// Ledger maps inner commits to outer commits, in the order in which the outer ones were built.
type Ledger struct {
	Base   Pair   // the inner root and the outer base
	Landed []Pair // oldest first; callers must not change it
	Tail   []Pair // pending, oldest first; callers must not change it
	Synced []Pair // commits that gave the agent the user's commits, oldest first; callers must not change it

	file       string
	stored     int                    // number of entries in the file that are still right
	whole      bool                   // the file contains those entries and nothing else
	pairs      map[gitops.OID]Pair    // the base, the landed and the synced pairs, by inner commit
	outer      gitops.Set[gitops.OID] // landed outer commits
	superseded gitops.Set[gitops.OID]
	lines      bool                      // see [Ledger.HasLines]
	rebased    []Pair                    // see [Ledger.AddRebased]; also those whose outer commits are not landed at present
	forms      map[gitops.OID]gitops.OID // inner and outer commits of the rebased ones that count as landed
}

// ledgerFile returns the name of the ledger's file in a host state.
func ledgerFile(dir string) string { return filepath.Join(dir, "ledger") }

// Read reads the ledger in the host state dir. The refs decide which entries count: promoted is the last landed
// commit (the base if none has landed), pending the last pending one. If another program has removed or moved the ref promoted, the error is
// a *[RefError].
func Read(dir string, base Pair, promoted, pending gitops.OID) (*Ledger, error) {
	l := &Ledger{Base: base, file: ledgerFile(dir), pairs: map[gitops.OID]Pair{base.Inner: base}, outer: map[gitops.OID]bool{}, superseded: map[gitops.OID]bool{}}
	content, err := os.ReadFile(l.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	entries, whole, err := parse(string(content))
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", l.file, err)
	}
	landed := 0
	for i, p := range entries {
		if p.Outer == promoted {
			landed = i + 1
		}
	}
	if landed == 0 && promoted != base.Outer {
		last, err := lastLanded(dir, base.Outer, entries)
		if err != nil {
			return nil, err
		}
		return nil, &RefError{Ref: "refs/airlock/" + filepath.Base(dir) + "/promoted", At: promoted, Last: last}
	}
	l.Landed, l.Tail = entries[:landed:landed], entries[landed:]
	// Those after the last pending one were built, but another git has kept the refs from moving.
	l.Tail = l.Tail[:1+slices.IndexFunc(l.Tail, func(p Pair) bool { return p.Outer == pending })]
	l.stored = len(l.Landed) + len(l.Tail)
	l.whole = whole && l.stored == len(entries)
	l.index(l.Landed)
	return l, errors.Join(l.readSynced(dir), l.readRebased(dir))
}

// index adds landed pairs to the lookup tables.
func (l *Ledger) index(pairs []Pair) {
	for _, p := range pairs {
		l.pairs[p.Inner], l.outer[p.Outer] = p, true
		l.superseded.Add(p.Supersedes...)
		l.lines = l.lines || p.From != ""
	}
}

// Image returns the landed or synced pair of an inner commit. The pair of the root is the base.
func (l *Ledger) Image(inner gitops.OID) (p Pair, there bool) {
	p, there = l.pairs[inner]
	return p, there
}

// Has reports whether an inner commit is the root, has landed, or stands for some of the user's commits.
func (l *Ledger) Has(inner gitops.OID) bool {
	_, landed := l.pairs[inner]
	return landed
}

// HasOuter reports whether an outer commit was landed by the airlock.
func (l *Ledger) HasOuter(outer gitops.OID) bool { return l.outer[outer] }

// Superseded reports whether an outer commit was undone by a commit that landed later.
func (l *Ledger) Superseded(outer gitops.OID) bool { return l.superseded[outer] }

// Last returns the pair from which the next commits of main count: the last landed pair, or the base. If the last
// landed commits were set aside, or main does not have them, its inner commit is the one that landed before them. If the agent has rebased that one, it is the newest
// form of it.
func (l *Ledger) Last() Pair {
	p, after := l.newest()
	for _, form := range l.rebased {
		if form.Outer == p.Outer && l.Has(form.Inner) {
			p = form
		}
	}
	return l.with(p, after)
}

// LastAs is Last, with an inner commit in the place of the last one if it is another form of that.
func (l *Ledger) LastAs(inner gitops.OID) Pair {
	p, after := l.newest()
	if form, there := l.pairs[inner]; there && form.Outer == p.Outer && !form.Synced {
		return l.with(form, after)
	}
	return l.Last()
}

// newest returns the newest landed pair of main that was not set aside, or the base, and the number of landed pairs up to it.
func (l *Ledger) newest() (p Pair, after int) {
	for i, p := range slices.Backward(l.Landed) {
		if !p.Aside && !p.OffMain() {
			return p, i + 1
		}
	}
	return l.Base, 0
}

// with returns a pair whose image also has the changes of the landed pairs after it.
func (l *Ledger) with(p Pair, after int) Pair {
	if after < len(l.Landed) {
		p.Outer, p.Merged = l.Landed[len(l.Landed)-1].Outer, true
	}
	return p
}

// LeftOut returns the inner commits that are older than a landed or synced one and have not landed themselves, in the order in
// which they were left out. The user may have dropped some, and the agent's history may no longer have them.
func (l *Ledger) LeftOut() []gitops.OID {
	var left []gitops.OID
	for _, p := range append(l.Landed[:len(l.Landed):len(l.Landed)], l.Synced...) {
		for _, id := range p.Without {
			if !l.Has(id) && !slices.Contains(left, id) {
				left = append(left, id)
			}
		}
	}
	return left
}

// Newest returns the inner commit of the newest pending pair, or of the last landed one.
func (l *Ledger) Newest() gitops.OID {
	if n := len(l.Tail); n > 0 {
		return l.Tail[n-1].Inner
	}
	return l.Last().Inner
}

// NewestOf returns the newest landed commit of a first-parent history, oldest commit first, or nothing. After a restore of a checkpoint, the
// workspace does not have the commits of [Ledger.Tips], but older ones that landed.
func (l *Ledger) NewestOf(line []gitops.OID) []string {
	for _, inner := range slices.Backward(line) {
		if l.Has(inner) {
			return []string{string(inner)}
		}
	}
	return nil
}

// PendingTip returns the newest pending outer commit; empty if nothing is pending.
func (l *Ledger) PendingTip() gitops.OID {
	if n := len(l.Tail); n > 0 {
		return l.Tail[n-1].Outer
	}
	return ""
}

// tipsKept bounds the result of [Ledger.Tips].
const tipsKept = 100

// Tips returns a few inner commits that together reach all landed and synced ones but the [Ledger.Originals]: the last landed commit, each landed
// commit from which the agent reset its history to an older one, or after which another line landed, and the newest synced ones.
func (l *Ledger) Tips() []gitops.OID {
	tips := []gitops.OID{l.Last().Inner}
	if n := len(l.Landed); n > 0 && l.Landed[n-1].From != "" {
		tips = append(tips, l.Landed[n-1].Inner)
	}
	return append(tips, earlierTips(l.Landed, l.Synced)...)
}

// DecidedTips returns the tips of the commits that had landed, or were synced, before a commit was left out about which the user has made no
// decision. A ref that reaches such a commit may be the only one.
func (l *Ledger) DecidedTips(decided Decisions) []gitops.OID {
	opens := func(p Pair) bool { return l.leavesOpen(p, decided) }
	landed, synced := slices.IndexFunc(l.Landed, opens), slices.IndexFunc(l.Synced, opens)
	if landed < 0 && synced < 0 {
		return l.Tips()
	}
	last := l.Base
	if landed < 0 {
		landed = len(l.Landed)
	}
	if landed > 0 {
		last = l.Landed[landed-1]
	}
	if synced < 0 {
		synced = len(l.Synced)
	}
	return append([]gitops.OID{last.Inner}, earlierTips(l.Landed[:landed], l.Synced[:synced])...)
}

// leavesOpen reports whether a pair left out a commit about which the user has made no decision.
func (l *Ledger) leavesOpen(p Pair, decided Decisions) bool {
	return slices.ContainsFunc(p.Without, func(id gitops.OID) bool { return !l.Has(id) && decided.DropOf(id) == nil })
}

// earlierTips returns the tips below the last landed commit.
func earlierTips(landed, synced []Pair) []gitops.OID {
	tips := Inners(synced[max(0, len(synced)-tipsKept/2):])
	for i := len(landed) - 1; i > 0 && len(tips) < tipsKept; i-- {
		if len(landed[i].Supersedes) > 0 || landed[i].From != landed[i-1].From {
			tips = append(tips, landed[i-1].Inner)
		}
	}
	return tips
}

// TwiceError reports that an inner commit would land twice, or that two inner commits would have the same outer commit.
type TwiceError struct{ Inner, Outer gitops.OID }

func (e *TwiceError) Error() string {
	return fmt.Sprintf("make the agent's commit %.12s pending as %.12s: the ledger has one of the two already", e.Inner, e.Outer)
}

// Next returns commands after which the outer or the inner commit has another id, because both contain the time.
func (e *TwiceError) Next() []string {
	return []string{"git airlock promote", "git airlock visit -- git commit --amend --no-edit"}
}

// SetTail replaces the pending pairs. Unchanged pairs at the front keep their entries in the file. If a commit would land twice, the error is
// a *[TwiceError]. This check is enough, because pairs get into the ledger only here: [Ledger.Land] and [Ledger.Adopt] only move them.
func (l *Ledger) SetTail(tail []Pair) error {
	inner, outer := map[gitops.OID]bool{}, map[gitops.OID]bool{}
	for _, p := range tail {
		if l.Has(p.Inner) || l.HasOuter(p.Outer) || inner[p.Inner] || outer[p.Outer] {
			return &TwiceError{p.Inner, p.Outer}
		}
		inner[p.Inner], outer[p.Outer] = true, true
	}
	same := 0
	for same < len(tail) && same < len(l.Tail) && tail[same].entry() == l.Tail[same].entry() {
		same++
	}
	if same < len(l.Tail) && l.stored > len(l.Landed)+same {
		l.stored, l.whole = len(l.Landed)+same, false
	}
	gone := slices.DeleteFunc(slices.Clone(l.Tail[same:]), func(p Pair) bool { return outer[p.Outer] })
	if l.Tail = slices.Clone(tail); len(gone) > 0 {
		l.keepFormer(gone)
	}
	return nil
}

// Land marks the pending pairs up to an outer commit as landed and returns how many it marked.
func (l *Ledger) Land(outer gitops.OID) int {
	i := slices.IndexFunc(l.Tail, func(p Pair) bool { return p.Outer == outer })
	if i < 0 {
		return 0
	}
	l.Landed = append(l.Landed, l.Tail[:i+1]...)
	l.index(l.Tail[:i+1])
	l.Tail = l.Tail[i+1:]
	return i + 1
}

// WaitingFor returns the pending pairs of an inner commit: one or none.
func (l *Ledger) WaitingFor(inner gitops.OID) []Pair {
	return slices.DeleteFunc(slices.Clone(l.Tail), func(p Pair) bool { return p.Inner != inner })
}

// InnerOf returns the inner commit of a pending one, or empty if no commit of that name is pending.
func (l *Ledger) InnerOf(outer gitops.OID) gitops.OID {
	if i := slices.IndexFunc(l.Tail, func(p Pair) bool { return p.Outer == outer }); i >= 0 {
		return l.Tail[i].Inner
	}
	return ""
}

// Adopt marks pairs that the user took as landed, in their order, even if other pairs wait before them. The same inner commits do
// not wait any more. If the pairs are not on the line that lands (onLine is false), the last landed commit of that line stays last.
func (l *Ledger) Adopt(taken []Pair, onLine bool) {
	l.Tail = slices.DeleteFunc(slices.Clone(l.Tail), func(t Pair) bool {
		return slices.ContainsFunc(taken, func(p Pair) bool { return p.Inner == t.Inner })
	})
	at := len(l.Landed)
	if !onLine && at > 0 {
		at--
	}
	l.Landed = slices.Insert(slices.Clone(l.Landed), at, taken...)
	l.index(taken)
	l.stored, l.whole = 0, false
}

// Save makes the file durable, usually by appending one block.
func (l *Ledger) Save() error {
	all := append(l.Landed[:len(l.Landed):len(l.Landed)], l.Tail...)
	if l.whole && l.stored == len(all) {
		return nil
	}
	var text strings.Builder
	from := 0
	if l.whole {
		from = l.stored
	}
	for _, p := range all[from:] {
		text.WriteString(p.entry() + "\n")
	}
	var err error
	if from > 0 {
		err = appendFile(l.file, text.String())
	} else {
		err = durable.WriteFile(l.file, []byte(text.String()), 0o600)
	}
	l.stored, l.whole = len(all), err == nil
	return err
}

func appendFile(name, text string) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// Cache passes a ledger from one cycle to the next, so that a long file is not read for each landing.
type Cache struct {
	ledger *Ledger
	stamp  fs.FileInfo
}

// Read returns the cached ledger if the refs and the file have not changed, and reads the file otherwise. The cache
// is empty afterwards: the caller owns the ledger until it calls [Cache.Keep].
func (c *Cache) Read(dir string, base Pair, promoted, pending gitops.OID) (*Ledger, error) {
	l := c.ledger
	c.ledger = nil
	if l != nil && l.Base.Inner == base.Inner && l.Base.Outer == base.Outer && l.Last().Outer == promoted && l.PendingTip() == pending {
		if now, err := os.Stat(l.file); err == nil && os.SameFile(now, c.stamp) && now.Size() == c.stamp.Size() && now.ModTime().Equal(c.stamp.ModTime()) {
			return l, errors.Join(l.readSynced(dir), l.readRebased(dir))
		}
	}
	return Read(dir, base, promoted, pending)
}

// Keep stores a ledger in the cache if its file has the same entries, and ignores any other ledger.
func (c *Cache) Keep(l *Ledger) {
	if l == nil || !l.whole || l.stored != len(l.Landed)+len(l.Tail) {
		return
	}
	if stamp, err := os.Stat(l.file); err == nil {
		c.ledger, c.stamp = l, stamp
	}
}

// NewestAllowed returns the newest commit that the rules allow to land and that is not newer than the target.
func (l *Ledger) NewestAllowed(target, mayLand gitops.OID) gitops.OID {
	if target == "" || mayLand == "" {
		return mayLand
	}
	if l.Has(target) {
		return "" // it has already landed
	}
	for _, t := range l.Tail { // the commits of the chain are in their order
		if t.Inner == target {
			return t.Outer
		}
		if t.Outer == mayLand {
			break // the target is held, or was built later
		}
	}
	return mayLand
}
