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

// formerFile returns the name of the file with former pending commits: an outer commit and its inner one in each line. A landing or a
// verdict makes other outer commits of those that still wait. Their former ids are in what the user has read before.
func formerFile(dir string) string { return filepath.Join(dir, "former") }

// keepFormer adds pending pairs that are not pending any more. The file is for people who type an old id: a failure to write it must not
// keep commits from landing.
func (l *Ledger) keepFormer(pairs []Pair) {
	var text strings.Builder
	for _, p := range pairs {
		text.WriteString(string(p.Outer) + " " + string(p.Inner) + "\n")
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

// Former returns the inner commit for which an outer commit was pending before, until another outer commit took its place. It returns an
// empty id if there is none, if there were several, or if the outer commit is pending now or has landed.
func (l *Ledger) Former(outer gitops.OID) (inner gitops.OID) {
	if outer == "" || l.HasOuter(outer) || l.now(func(p Pair) bool { return p.Outer == outer }) != "" {
		return ""
	}
	for _, name := range []string{".1", ""} {
		content, err := os.ReadFile(formerFile(filepath.Dir(l.file)) + name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return ""
		}
		for line := range strings.Lines(string(content)) {
			fields := strings.Fields(line)
			if len(fields) != 2 || fields[0] != string(outer) || !strings.HasSuffix(line, "\n") {
				continue
			}
			if inner != "" && string(inner) != fields[1] {
				return ""
			}
			inner = gitops.OID(fields[1])
		}
	}
	return inner
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
