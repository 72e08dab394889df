package promote_test

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// walk returns the commits that stand on a tree, and the tree after them. If the branch has a commit that the agent has amended, the first
// new commit after those that the agent still has undoes it.
func (m *reviewer) walk(tip string, landed map[*commit]gitops.OID, may func(*commit) bool, passes int) (stand []*commit, tree string) {
	m.t.Helper()
	undone := m.undone(landed)
	if undone == nil {
		return m.walkOn(tip, landed, may, passes)
	}
	chain, at := m.chain(landed)
	if m.asOne && len(chain) > 0 && may(chain[len(chain)-1]) {
		first := chain[len(chain)-1]
		if after, clean := m.merge(m.treeOf(undone.files), tip, m.treeOf(first.files)); clean {
			stand, tree = m.walkOn(after, landed, func(c *commit) bool { return may(c) && c != first }, passes)
			return append(stand, first), tree
		}
	}
	made, before := m.treeOf(undone.files), m.treeOf(at.files)
	if m.asLanded { // some of what it did may have been done on the branch, so that there was less to do
		made, before = m.git("rev-parse", string(landed[undone])+"^{tree}"), m.git("rev-parse", string(landed[undone])+"^1^{tree}")
	}
	without, clean := m.merge(made, tip, before)
	if clean {
		if stand, tree = m.walkOn(without, landed, may, passes); slices.ContainsFunc(stand, func(c *commit) bool { return slices.Contains(chain, c) }) {
			return stand, tree
		}
	}
	return m.walkOn(tip, landed, func(c *commit) bool { return may(c) && !slices.Contains(chain, c) }, passes)
}

// chain returns the agent's new commits of its first-parent history, newest first, and the commit before them.
func (m *reviewer) chain(landed map[*commit]gitops.OID) (chain []*commit, at *commit) {
	at = m.a.main
	for ; at != m.a.root && landed[at] == ""; at = at.parents[0] {
		chain = append(chain, at)
	}
	return chain, at
}

// undone returns the landed commit that the agent has amended and that no landed commit undoes, or nil.
func (m *reviewer) undone(landed map[*commit]gitops.OID) *commit {
	m.t.Helper()
	if !slices.ContainsFunc(m.gone, func(c *commit) bool { return landed[c] != "" }) {
		return nil
	}
	notes := m.notes()
	var superseded []string
	for _, id := range landed {
		superseded = append(superseded, noteValues(notes[id], "Supersedes")...)
	}
	for _, c := range slices.Backward(m.gone) {
		if landed[c] != "" && !slices.Contains(superseded, string(landed[c])) {
			return c
		}
	}
	return nil
}

// walkOn returns the commits that stand on a tree, and the tree after them. may reports whether a commit may land. In a second pass,
// commits can stand that needed one after them: such as one that another had done already, and a third one took back. A commit of a
// side branch stands with its merge. A merge needs the commit before it, unless a verdict leaves that one out. Commits that the tree has
// already stand if no others are left.
func (m *reviewer) walkOn(tip string, landed map[*commit]gitops.OID, may func(*commit) bool, passes int) (stand []*commit, tree string) {
	m.t.Helper()
	stands := map[*commit]bool{m.a.root: true}
	for c := range landed {
		stands[c] = true
	}
	chain, at := m.chain(landed)
	inside := m.treeOf(at.files)
	order := m.order
	if m.olderLast {
		newest := len(order) - 1
		for ; newest >= 0 && landed[order[newest]] == ""; newest-- {
		}
		order = slices.Concat(order[newest+1:], order[:newest+1])
	}
	for _, c := range slices.Repeat(order, passes) {
		if stands[c] || !may(c) || m.merged[c] != nil {
			continue
		}
		merges := len(c.parents) > 1
		if merges && (!stands[m.remaining(c.parents[0])] || !stands[c.parents[1]] && !may(c.parents[1])) {
			continue
		}
		base, theirs := m.treeOf(c.parents[0].files), m.treeOf(c.files)
		own, ok := m.merge(base, inside, theirs)
		ok = ok && m.inside && slices.Contains(chain, c)
		changes := base != theirs
		base, theirs, clean := m.amongNewer(c, base, theirs, stands)
		if !clean {
			continue
		}
		after, clean := m.merge(base, tip, theirs)
		if ok {
			after, clean = m.merge(inside, tip, own)
		}
		if !clean || after == tip && changes && !merges && (base != theirs || m.lacksOlder(c, stands)) {
			continue
		}
		if ok {
			inside = own
		}
		if merges && !stands[c.parents[1]] {
			stands[c.parents[1]] = true
			stand = append(stand, c.parents[1])
		}
		stands[c], tip = true, after
		stand = append(stand, c)
	}
	left := slices.DeleteFunc(slices.Clone(m.order), func(c *commit) bool { return stands[c] })
	if slices.ContainsFunc(left, func(c *commit) bool {
		if len(c.parents) == 0 {
			return true // it has a file of its own
		}
		after, clean := m.merge(m.treeOf(c.parents[0].files), tip, m.treeOf(c.files))
		return m.words[c].LeavesOut() || !clean || after != tip || len(c.parents) > 1
	}) {
		return stand, tip
	}
	return append(stand, slices.DeleteFunc(left, func(c *commit) bool { return !may(c) })...), tip
}

// amongNewer returns the trees between which a commit changes something, although newer commits stand already: see the builder's function.
func (m *reviewer) amongNewer(c *commit, before, after string, stands map[*commit]bool) (base, theirs string, clean bool) {
	m.t.Helper()
	var newer []*commit
	at := m.a.main
	for ; at != c && at != m.a.root; at = at.parents[0] {
		if stands[at] {
			newer = append(newer, at)
		}
	}
	if at != c {
		return before, after, true
	}
	for _, n := range slices.Backward(newer) {
		from, to := m.treeOf(n.parents[0].files), m.treeOf(n.files)
		if before, clean = m.merge(from, before, to); !clean {
			return "", "", false
		}
		if after, clean = m.merge(from, after, to); !clean {
			return "", "", false
		}
	}
	return before, after, true
}

// lacksOlder reports whether a commit before another one does not stand.
func (m *reviewer) lacksOlder(c *commit, stands map[*commit]bool) bool {
	return slices.ContainsFunc(reached(c, func(*commit) bool { return false }), func(before *commit) bool { return before != c && !stands[before] })
}

// remaining returns the newest commit of a first-parent history that no verdict leaves out.
func (m *reviewer) remaining(c *commit) *commit {
	for m.words[c].LeavesOut() && len(c.parents) > 0 {
		c = c.parents[0]
	}
	return c
}

func (m *reviewer) treeOf(files tree) string {
	return string(objects{filepath.Join(m.GitDir), m.Format}.tree(m.t, files))
}

// merge merges trees as git does. Both sides are the agent's, so that no file moves with a renamed folder: see [quarantine.Merge].
func (m *reviewer) merge(base, ours, theirs string) (tree string, clean bool) {
	m.t.Helper()
	switch {
	case base == ours || ours == theirs:
		return theirs, true
	case base == theirs:
		return ours, true
	}
	key := [3]string{base, ours, theirs}
	if done, known := m.merges[key]; known {
		return done, done != ""
	}
	b := m.git("commit-tree", "-m", "base", base)
	out, err := tryGit(m.Top, "", "-c", "merge.directoryRenames=false", "merge-tree", "--write-tree", m.git("commit-tree", "-p", b, "-m", "ours", ours), m.git("commit-tree", "-p", b, "-m", "theirs", theirs))
	if err == nil {
		tree = strings.TrimSpace(out)
	}
	m.merges[key] = tree
	return tree, err == nil
}
