package promote_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// recordLanded records the new commits of the branch. If the program made them, it compares them with the expected ones.
func (s *steps) recordLanded(program bool, before gitops.OID) {
	s.t.Helper()
	tip := s.tip()
	if program && tip != before {
		if !s.out("merge-base", "--is-ancestor", string(before), string(tip)) {
			s.t.Errorf("the branch went from %s to %s", before, tip)
		}
	}
	past := strings.Fields(s.git("rev-list", "--walk-reflogs", s.record.Branch)) // the user may have taken a commit and amended it at once
	notes := map[gitops.OID]string(nil)
	for line := range strings.Lines(s.git(append([]string{"rev-list", "--topo-order", "--reverse", "--parents", string(tip)}, past...)...) + "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || s.seen[gitops.OID(fields[0])] {
			continue
		}
		if notes == nil {
			notes = s.notes()
		}
		id := gitops.OID(fields[0])
		s.seen[id] = true
		note := notes[id]
		if noteValue(note, "Commit") != fields[0] {
			if program {
				s.t.Errorf("%s, %q, landed without a note", id, s.git("show", "-s", "--format=%s", fields[0]))
			}
			continue
		}
		inner := gitops.OID(noteValue(note, "Inner-Commit"))
		if other := s.images[inner]; other != "" {
			s.t.Errorf("%s (%s) landed twice: as %s and as %s", inner, s.git("show", "-s", "--format=%s", fields[0]), other, id)
		}
		if s.seen[inner] {
			s.t.Errorf("%s, which was on the branch, landed as %s", inner, id)
		}
		if s.dropped[inner] {
			s.t.Errorf("%s landed as %s, and was dropped", inner, id)
		}
		s.images[inner] = id
		got := s.git("show", "-s", "--format=%at %B", fields[0])
		if want := git(s.t, s.inner, "show", "-s", "--format=%at %B", string(inner)); got != want {
			s.t.Errorf("%s landed as %s with %q, not %q", inner, id, got, want)
		}
		if program && len(s.dropped) == 0 {
			s.compare(inner, id, gitops.OID(first(fields[1:])))
		}
	}
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// compare compares the names in the tree of a landed commit with the expected names: those of the outer first parent,
// with the agent's additions and removals since the inner first parent.
func (s *steps) compare(inner, outer, onto gitops.OID) {
	s.t.Helper()
	theirs := s.names(s.inner, string(inner))
	got, ours := s.names(s.Top, string(outer)), map[string]bool{}
	if onto != "" {
		ours = s.names(s.Top, string(onto))
	}
	for _, before := range s.bases(inner) {
		want := map[string]bool{}
		for name := range ours {
			if theirs[name] || !before[name] {
				want[name] = true
			}
		}
		for name := range theirs {
			if ours[name] || !before[name] {
				want[name] = true
			}
		}
		if fmt.Sprint(want) == fmt.Sprint(got) {
			return
		}
	}
	s.t.Errorf("%s landed as %s with %v on %v, and has %v", inner, outer, got, ours, theirs)
}

// bases returns the sets of names since which a commit's changes may count. Usually that is the first parent. For the
// first commit to land, it can be any last landed commit. If the commit continues from a commit of the branch, that
// is the base.
func (s *steps) bases(inner gitops.OID) []map[string]bool {
	none := map[string]bool{}
	bases := []map[string]bool{none, s.names(s.inner, string(s.record.Root))}
	parent := first(strings.Fields(git(s.t, s.inner, "show", "-s", "--format=%P", string(inner))))
	outside := none
	if parent != "" {
		bases = append(bases, s.names(s.inner, parent))
		if s.seen[gitops.OID(parent)] {
			outside = s.names(s.inner, parent)
		}
	}
	for other := range s.images {
		if other == inner {
			continue
		}
		names := s.names(s.inner, string(other))
		bases = append(bases, names)
		if len(outside) > 0 {
			mixed := map[string]bool{}
			for name := range names {
				mixed[name] = !strings.HasPrefix(name, "u") || outside[name]
			}
			for name := range outside {
				mixed[name] = mixed[name] || strings.HasPrefix(name, "u")
			}
			maps.DeleteFunc(mixed, func(_ string, there bool) bool { return !there })
			bases = append(bases, mixed)
		}
	}
	return bases
}

func (s *steps) names(dir, commit string) map[string]bool {
	names := map[string]bool{}
	for _, name := range strings.Fields(git(s.t, dir, "ls-tree", "--name-only", commit)) {
		names[name] = true
	}
	return names
}

// waiting returns the inner commits that must land. If a merge was dropped, the commits that only it reaches are left
// out.
func (s *steps) waiting() []gitops.OID {
	parents := map[gitops.OID][]string{}
	for line := range strings.Lines(git(s.t, s.inner, "rev-list", "--parents", "main") + "\n") {
		if fields := strings.Fields(line); len(fields) > 0 {
			parents[gitops.OID(fields[0])] = fields[1:]
		}
	}
	var list []gitops.OID
	met := map[gitops.OID]bool{s.record.Root: true}
	for todo := []string{git(s.t, s.inner, "rev-parse", "main")}; len(todo) > 0; {
		id := gitops.OID(todo[len(todo)-1])
		todo = todo[:len(todo)-1]
		if met[id] || s.seen[id] {
			continue
		}
		met[id] = true
		of := parents[id]
		if s.dropped[id] {
			of = of[:min(1, len(of))]
		} else if s.images[id] == "" {
			list = append(list, id)
		}
		todo = append(todo, of...)
	}
	return list
}

// end lets all remaining commits land.
func (s *steps) end() {
	s.t.Helper()
	s.abort()
	s.out("config", "airlock.autoLand", "true")
	for try := 0; ; try++ {
		o := s.promote(promote.Options{Land: true})
		state, err := s.engine.State(s.t.Context())
		check(s.t, err)
		if waiting := s.waiting(); state.Pending != len(waiting) || o.Pending > 0 && len(waiting) == 0 {
			s.t.Errorf("%d commits wait, the state says %d: %v", len(waiting), state.Pending, waiting)
		}
		if len(o.Holds) == 0 {
			break
		}
		if try > 20 || o.Holds[0].Reason != ledger.Conflict {
			s.t.Fatalf("held: %+v", o.Holds)
		}
		s.resolve(o.Holds[0])
	}
	if waiting := s.waiting(); len(waiting) > 0 {
		s.t.Errorf("these have not landed: %v", waiting)
	}
	if got := s.git("status", "--porcelain"); got != "" {
		s.t.Errorf("git status: %s", got)
	}
	s.nothingLeft()
}

// resolve ends a conflict in the way that the hold describes.
func (s *steps) resolve(h ledger.Hold) {
	s.t.Helper()
	const reject = "git airlock reject -m TEXT "
	if i := slices.IndexFunc(h.Next, func(line string) bool { return strings.HasPrefix(line, reject) }); i >= 0 {
		left, err := s.leaveOut(strings.TrimPrefix(h.Next[i], reject))
		check(s.t, err)
		for _, d := range left {
			inner := gitops.OID(noteValue(s.notes()[d.Commit], "Inner-Commit"))
			if inner == "" {
				inner = d.Commit
			}
			s.dropped[inner] = true
		}
		s.note("dropped %v", left)
		return
	}
	commit, _, err := s.engine.Resolve(s.t.Context())
	s.note("promote --resolve: %s %v", commit, err)
	check(s.t, err)
	if s.Operation() != "" {
		s.out("checkout", "--ours", "--", "both")
		s.out("add", "-A")
		s.out("commit", "-q", "--allow-empty", "-m", "resolved")
	}
	s.recordLanded(false, "")
}
