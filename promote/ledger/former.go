package ledger

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// formerKept bounds the file with former pending commits, in bytes. It has room for the last 10,000 or more.
const formerKept = 2 << 20

// formerFile returns the name of the file with former pending commits. Each line has an outer commit, its inner commit and the rest of its
// entry. After a landing or a verdict, the inner commits that still wait get other outer commits, but the user may still type the ids that
// earlier output showed.
func formerFile(dir string) string { return filepath.Join(dir, "former") }

// keepFormer adds pairs that are not pending any more to the file. It reports no error: a failure to write the file must not keep commits
// from landing.
func (l *Ledger) keepFormer(pairs []Pair) {
	var text strings.Builder
	for _, p := range pairs {
		rest := strings.TrimPrefix(p.entry(), string(p.Inner)+" "+string(p.Outer))
		text.WriteString(string(p.Outer) + " " + string(p.Inner) + rest + "\n")
	}
	name := formerFile(filepath.Dir(l.file))
	if info, err := os.Stat(name); err == nil && info.Size() > formerKept {
		_ = os.Rename(name, name+".1")
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_, _ = f.WriteString(text.String())
	_ = f.Close()
}

// Former returns the inner commit of an outer commit that was pending before and is not any more. The result is empty if the outer commit
// was never pending, if it was pending for several inner commits, or if it is pending now or has landed.
func (l *Ledger) Former(outer gitops.OID) (inner gitops.OID) {
	if outer == "" || l.HasOuter(outer) || l.now(func(p Pair) bool { return p.Outer == outer }) != "" {
		return ""
	}
	pairs, err := former(filepath.Dir(l.file), string(outer)+" ")
	for _, p := range pairs {
		if err != nil || inner != "" && inner != p.Inner {
			return ""
		}
		inner = p.Inner
	}
	return inner
}

// former reads the former pending pairs whose line has a prefix, oldest first.
func former(dir, prefix string) (pairs []Pair, err error) {
	for _, name := range []string{".1", ""} {
		content, err := os.ReadFile(formerFile(dir) + name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for line := range strings.Lines(string(content)) {
			fields := strings.Fields(line)
			if !strings.HasPrefix(line, prefix) || len(fields) < 2 || !strings.HasSuffix(line, "\n") {
				continue
			}
			fields[0], fields[1] = fields[1], fields[0]
			if p, err := parsePair(fields); err == nil {
				pairs = append(pairs, p)
			}
		}
	}
	return pairs, nil
}

// Formers returns the former pending pairs, oldest first.
func (l *Ledger) Formers() ([]Pair, error) { return former(filepath.Dir(l.file), "") }

// Made returns the pairs of all outer commits that the files in a host state name: the landed, the pending and the former ones.
func Made(dir string) ([]Pair, error) {
	pairs, err := former(dir, "")
	if err != nil {
		return nil, err
	}
	all, err := entries(dir)
	return append(pairs, all...), err
}

// Now returns the outer commit that is pending in the place of a former one, see [Ledger.Former], or the same commit.
func (l *Ledger) Now(outer gitops.OID) gitops.OID {
	inner := l.Former(outer)
	if now := l.now(func(p Pair) bool { return p.Inner == inner }); inner != "" && now != "" {
		return now
	}
	return outer
}

// now returns the outer commit of the first pending pair with a property, or empty.
func (l *Ledger) now(has func(Pair) bool) gitops.OID {
	for _, p := range l.Tail {
		if has(p) {
			return p.Outer
		}
	}
	return ""
}
