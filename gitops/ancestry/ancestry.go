// Package ancestry finds out which commits do not reach others, whatever the dates of the commits are.
//
// "git rev-list A ^B" walks from A and from B at the same time, the commits with the newest committer dates first. When it is left with commits that B
// reaches, and that are older than those found so far, it walks only a few more of them. If a longer run of commits with old dates lies between B and
// a commit of the result, git does not notice that B reaches this commit, too. With a commit-graph git does, but a repository need not have one. So
// its list is complete, and may have too many commits. An agent chooses the dates of its commits, and git rebase --committer-date-is-author-date makes
// such runs as well.
package ancestry

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
)

// RevList runs git rev-list with the revisions of its standard input, without those that do not exist.
type RevList func(revisions io.Reader, out io.Writer, options ...string) error

// link is a commit of a list with its parents.
type link struct {
	commit  string
	parents []string
}

func linkOf(line string) link {
	fields := strings.Fields(line)
	return link{fields[0], fields[1:]}
}

// Unreached returns the commits that tips reach and others do not reach, children first.
func Unreached[ID ~string](tips, others []ID, list RevList) (unreached []ID, err error) {
	var out bytes.Buffer
	if err := list(revisions(tips, "", others, "^"), &out, "--topo-order", "--parents"); err != nil || out.Len() == 0 {
		return nil, err
	}
	found, listed := []link(nil), map[string]bool{}
	for line := range strings.Lines(out.String()) {
		l := linkOf(line)
		found, listed[l.commit] = append(found, l), true
	}
	oldest := slices.DeleteFunc(slices.Clone(found), func(l link) bool {
		return slices.ContainsFunc(l.parents, func(id string) bool { return listed[id] })
	})
	reached := map[string]bool{}
	if some, err := reachSome(oldest, others, list); err != nil {
		return nil, err
	} else if some {
		for chunk := range slices.Chunk(oldest, mostOldest) {
			w, err := walkFrom(chunk, others, list)
			if err != nil {
				return nil, err
			}
			for id, c := range w.commits {
				reached[id] = reached[id] || c.from&other != 0
			}
		}
	}
	for _, l := range found {
		if !reached[l.commit] {
			unreached = append(unreached, ID(l.commit))
		}
	}
	return unreached, nil
}

// reachSome reports whether the others may reach one of the oldest commits of a list. If they do not, they reach no commit of the list. An other
// can be far away from the list, such as the tag of an old version. Git walks to it much faster than [walk], which needs the commits on the way.
// A commit without the history of its parents is in git's list if, and only if, the others reach it.
func reachSome[ID ~string](oldest []link, others []ID, list RevList) (bool, error) {
	if len(oldest) > mostAsked {
		return len(others) > 0, nil
	}
	for _, l := range oldest {
		far := slices.DeleteFunc(slices.Clone(others), func(id ID) bool { return slices.Contains(l.parents, string(id)) })
		if len(far) == 0 {
			continue
		}
		var options []string
		if len(l.parents) == 0 {
			options = []string{"--max-parents=0"} // instead of the whole history
		}
		s := &search{line: l.commit + "\n"}
		err := list(revisions(far, "", l.parents, "^"), s, options...)
		if s.found {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// search looks for a line in the output of git, and ends git when it has found the line.
type search struct {
	line  string
	rest  string // the beginning of a line
	found bool
}

// Write implements [io.Writer].
func (s *search) Write(p []byte) (int, error) {
	text := s.rest + string(p)
	whole := strings.LastIndexByte(text, '\n') + 1
	s.rest = text[whole:]
	if s.found = strings.HasPrefix(text[:whole], s.line) || strings.Contains(text[:whole], "\n"+s.line); s.found {
		return 0, errDone
	}
	return len(p), nil
}

// revisions returns two lists of commits as the input of rev-list, each with a prefix.
func revisions[A, B ~string](commits []A, prefix string, more []B, before string) io.Reader {
	var text strings.Builder
	for _, id := range commits {
		text.WriteString(prefix + string(id) + "\n")
	}
	for _, id := range more {
		text.WriteString(before + string(id) + "\n")
	}
	return strings.NewReader(text.String())
}

const (
	// other marks what the others reach. Each of the oldest commits of a walk has another bit.
	other      = 1
	mostOldest = 63
	// mostAsked is the number of oldest commits for which [reachSome] asks git, each by itself.
	mostAsked = 2
	// mostWalked bounds the commits of a walk, which takes a second or two then. Without a common ancestor it would be the whole history. Beyond it,
	// git's own answer counts.
	mostWalked = 500_000
)

// walk finds the commits that the others reach, among those that can reach one of the oldest commits of a list. A path from an other to a commit of
// the list leads on to one of the oldest, and an ancestor of all the oldest is on none of these paths. So the walk ends when it has met all commits
// that the others reach, except such ancestors and what lies behind them.
type walk struct {
	commits map[string]*commit
	all     uint64 // the bits of the oldest commits
	open    int    // number of commits that the walk still has to meet
	met     int
	rest    []byte // the beginning of a line
}

type commit struct {
	from    uint64    // which of the oldest commits and of the others reach it
	met     bool      // its parents are known
	parents []*commit // nil if they are reached by all
}

// errDone ends git when the walk is done.
var errDone = errors.New("done")

// walkFrom walks from the oldest commits and from the others. Git sends it the commits with the newest dates first.
func walkFrom[ID ~string](oldest []link, others []ID, list RevList) (*walk, error) {
	w := &walk{commits: map[string]*commit{}}
	var begin []string
	for i, l := range oldest {
		begin, w.all = append(begin, l.commit), w.all|other<<(i+1)
	}
	for _, id := range others {
		w.mark(w.commit(string(id)), other)
	}
	for i, id := range begin {
		w.mark(w.commit(id), other<<(i+1))
	}
	err := list(revisions(begin, "", others, ""), w, "--parents")
	if w.done() {
		err = nil
	}
	return w, err
}

func (w *walk) done() bool { return w.open == 0 || w.met >= mostWalked }

// Write implements [io.Writer] for the output of git.
func (w *walk) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for !w.done() {
		line, rest, whole := bytes.Cut(w.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		w.meet(linkOf(string(line)))
		w.rest = rest
	}
	return 0, errDone
}

func (w *walk) meet(l link) {
	c := w.commit(l.commit)
	w.met++
	w.count(c, -1)
	c.met = true
	for _, id := range l.parents {
		parent := w.commit(id)
		if w.mark(parent, c.from); c.from != w.all|other {
			c.parents = append(c.parents, parent)
		}
	}
}

// commit returns a commit of the walk, which may be new to it.
func (w *walk) commit(id string) *commit {
	if w.commits[id] == nil {
		w.commits[id] = &commit{}
	}
	return w.commits[id]
}

// mark adds bits to a commit, and to what it reaches.
func (w *walk) mark(c *commit, bits uint64) {
	for todo := []*commit{c}; len(todo) > 0; {
		c, todo = todo[len(todo)-1], todo[:len(todo)-1]
		if c.from|bits == c.from {
			continue
		}
		w.count(c, -1)
		c.from |= bits
		w.count(c, 1)
		todo = append(todo, c.parents...)
	}
}

// count adds a number to open if a commit is open.
func (w *walk) count(c *commit, number int) {
	if !c.met && c.from&other != 0 && c.from&w.all != w.all {
		w.open += number
	}
}
