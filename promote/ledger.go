package promote

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// pair is an inner commit and its image outside.
type pair struct {
	inner, outer gitops.OID
	merged       bool         // the trees differ: the outer one has the user's own changes as well
	supersedes   []gitops.OID // landed outer commits that this one undoes
}

const exactTree, mergedTree = "exact", "merged"

// tree words how the trees of the pair relate.
func (p pair) tree() string {
	if p.merged {
		return mergedTree
	}
	return exactTree
}

func (p pair) line() string {
	line := string(p.inner) + " " + string(p.outer) + " " + p.tree()
	for _, s := range p.supersedes {
		line += " " + string(s)
	}
	return line + "\n"
}

// ledger maps inner commits to outer ones, in the order in which they were built.
type ledger struct {
	file       string
	landed     []pair
	tail       []pair              // pending
	stored     int                 // entries of the file that are still right
	whole      bool                // the file holds those and nothing else
	pairs      map[gitops.OID]pair // those that have landed, and the base, by their inner commits
	outer      map[gitops.OID]bool // outer commits that have landed
	superseded map[gitops.OID]bool
}

// readLedger reads the ledger and lets the refs say what of it counts: promoted is the last landed commit
// (the base, if none has landed), pending the last pending one.
func readLedger(file string, base pair, promoted, pending gitops.OID) (*ledger, error) {
	l := &ledger{file: file, pairs: map[gitops.OID]pair{base.inner: base}, outer: map[gitops.OID]bool{}, superseded: map[gitops.OID]bool{}}
	content, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	entries, whole, err := parseLedger(string(content))
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", file, err)
	}
	landed := 0
	for i, p := range entries {
		if p.outer == promoted {
			landed = i + 1
		}
	}
	if landed == 0 && promoted != base.outer {
		return nil, fmt.Errorf("read %q: %s, which the airlock's ref promoted names, is not in it", file, promoted)
	}
	l.landed, l.tail = entries[:landed:landed], entries[landed:]
	if len(l.tail) == 0 || l.tail[len(l.tail)-1].outer != pending {
		l.tail = nil
	}
	l.stored = len(l.landed) + len(l.tail)
	l.whole = whole && l.stored == len(entries)
	l.index(l.landed)
	return l, nil
}

// recall reads the ledger, unless it is as the last cycle left it: it grows with all that has landed.
func (e *Engine) recall(base pair, promoted, pending gitops.OID) (*ledger, error) {
	file := filepath.Join(e.Dir(), "ledger")
	l := e.recalled
	e.recalled = nil // until this cycle has been made
	if l != nil && l.at(base, promoted, pending) {
		if now, err := os.Stat(file); err == nil && os.SameFile(now, e.stamp) && now.Size() == e.stamp.Size() && now.ModTime().Equal(e.stamp.ModTime()) {
			return l, nil
		}
	}
	return readLedger(file, base, promoted, pending)
}

// remember keeps a ledger for the next cycle.
func (e *Engine) remember(l *ledger) {
	if l == nil || !l.whole || l.stored != len(l.landed)+len(l.tail) {
		return // not as it is in the file
	}
	if stamp, err := os.Stat(filepath.Join(e.Dir(), "ledger")); err == nil {
		e.recalled, e.stamp = l, stamp
	}
}

// at tells whether the ledger ends where the refs say.
func (l *ledger) at(base pair, promoted, pending gitops.OID) bool {
	last := gitops.OID("")
	if n := len(l.tail); n > 0 {
		last = l.tail[n-1].outer
	}
	return l.pairs[base.inner].outer == base.outer && l.last(base).outer == promoted && last == pending
}

// parseLedger reads the entries; whole is false if the last line is torn, as a crash leaves it.
func parseLedger(content string) (entries []pair, whole bool, err error) {
	for line := range strings.Lines(content) {
		text, terminated := strings.CutSuffix(line, "\n")
		if !terminated {
			return entries, false, nil
		}
		p, err := parsePair(strings.Fields(text))
		if err != nil {
			return nil, false, fmt.Errorf("entry %q: %w", gitops.Escape(text), err)
		}
		entries = append(entries, p)
	}
	return entries, true, nil
}

func parsePair(fields []string) (p pair, err error) {
	if len(fields) < 3 || fields[2] != exactTree && fields[2] != mergedTree {
		return p, errors.New("not an inner commit, an outer one and how their trees relate")
	}
	p.merged = fields[2] == mergedTree
	var ids []gitops.OID
	for i, field := range fields {
		if i == 2 {
			continue
		}
		id, err := gitops.ParseOID(field)
		if err != nil {
			return p, err
		}
		ids = append(ids, id)
	}
	p.inner, p.outer, p.supersedes = ids[0], ids[1], ids[2:]
	return p, nil
}

// index makes landed pairs known.
func (l *ledger) index(pairs []pair) {
	for _, p := range pairs {
		l.pairs[p.inner], l.outer[p.outer] = p, true
		for _, s := range p.supersedes {
			l.superseded[s] = true
		}
	}
}

// has tells whether an inner commit is the root or has landed.
func (l *ledger) has(inner gitops.OID) bool {
	_, landed := l.pairs[inner]
	return landed
}

// last is the last landed pair, or the base.
func (l *ledger) last(base pair) pair {
	if len(l.landed) == 0 {
		return base
	}
	return l.landed[len(l.landed)-1]
}

// tipsKept bounds how many tips are told.
const tipsKept = 100

// tips are the inner commits that reach all that has landed: the last one, and before it those that the agent went
// back behind, the newest of them.
func (l *ledger) tips(base pair) []gitops.OID {
	tips := []gitops.OID{l.last(base).inner}
	for i := len(l.landed) - 1; i > 0 && len(tips) < tipsKept; i-- {
		if len(l.landed[i].supersedes) > 0 {
			tips = append(tips, l.landed[i-1].inner)
		}
	}
	return tips
}

// drop forgets what is pending.
func (l *ledger) drop() []pair {
	dropped := l.tail
	l.tail = nil
	if len(dropped) > 0 {
		l.stored, l.whole = len(l.landed), false
	}
	return dropped
}

// add makes pairs pending.
func (l *ledger) add(pairs []pair) {
	l.tail = append(l.tail, pairs...)
}

// land marks the pending pairs up to the outer commit as landed and returns how many they were.
func (l *ledger) land(outer gitops.OID) int {
	for i, p := range l.tail {
		if p.outer == outer {
			l.landed = append(l.landed, l.tail[:i+1]...)
			l.index(l.tail[:i+1])
			l.tail = l.tail[i+1:]
			return i + 1
		}
	}
	return 0
}

// take marks pending pairs as landed, in their order, whatever others wait before them. If they are beside the line that lands,
// what landed last on it stays the last.
func (l *ledger) take(taken []pair, onLine bool) {
	l.tail = slices.DeleteFunc(slices.Clone(l.tail), func(t pair) bool {
		return slices.ContainsFunc(taken, func(p pair) bool { return p.outer == t.outer })
	})
	at := len(l.landed)
	if !onLine && at > 0 {
		at--
	}
	l.landed = slices.Insert(slices.Clone(l.landed), at, taken...)
	l.index(taken)
	l.stored, l.whole = 0, false
}

// exact is the newest landed pair whose trees are the same, or the base.
func (l *ledger) exact(base pair) pair {
	for i := len(l.landed) - 1; i >= 0; i-- {
		if !l.landed[i].merged {
			return l.landed[i]
		}
	}
	return base
}

// save makes the file durable. Usually that is one appended block.
func (l *ledger) save() error {
	all := append(l.landed[:len(l.landed):len(l.landed)], l.tail...)
	if l.whole && l.stored == len(all) {
		return nil
	}
	var text strings.Builder
	from := 0
	if l.whole {
		from = l.stored
	}
	for _, p := range all[from:] {
		text.WriteString(p.line())
	}
	var err error
	if from > 0 {
		err = appendFile(l.file, text.String())
	} else {
		err = gitops.WriteFile(l.file, []byte(text.String()), 0o600)
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
