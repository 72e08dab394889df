package identity

import (
	"cmp"
	"slices"
)

// span is a range of ids: first is in it, and end is the first id after it.
type span struct{ first, end int }

// idSet is a set of uids or gids: spans in ascending order, which do not overlap and are not empty.
type idSet []span

// newIDs makes a set from spans in any order.
func newIDs(spans ...span) idSet {
	sorted := slices.Clone(spans)
	slices.SortFunc(sorted, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	var s idSet
	for _, sp := range sorted {
		switch {
		case sp.first >= sp.end:
		case len(s) > 0 && sp.first <= s[len(s)-1].end:
			s[len(s)-1].end = max(s[len(s)-1].end, sp.end)
		default:
			s = append(s, sp)
		}
	}
	return s
}

// minus returns the ids of s that are not in t.
func (s idSet) minus(t idSet) idSet {
	var rest idSet
	for _, sp := range s {
		for _, cut := range t {
			if cut.end <= sp.first || sp.end <= cut.first {
				continue
			}
			if sp.first < cut.first {
				rest = append(rest, span{sp.first, cut.first})
			}
			sp.first = cut.end
			if sp.first >= sp.end {
				break
			}
		}
		if sp.first < sp.end {
			rest = append(rest, sp)
		}
	}
	return rest
}

// and returns the ids that are in both sets.
func (s idSet) and(t idSet) idSet { return s.minus(s.minus(t)) }

func (s idSet) size() int {
	n := 0
	for _, sp := range s {
		n += sp.end - sp.first
	}
	return n
}

// at returns the i-th id of the set, counted from 0.
func (s idSet) at(i int) int {
	for _, sp := range s {
		if i < sp.end-sp.first {
			return sp.first + i
		}
		i -= sp.end - sp.first
	}
	panic("identity: index out of range")
}

// pick returns a random id of the set that is not taken.
func (s idSet) pick(taken func(id int) bool) (id int, ok bool) {
	// There are few other airlocks, so a function that refuses this many ids in a row refuses all.
	const tries = 1 << 17
	size := s.size()
	if size == 0 {
		return 0, false
	}
	start := random(size)
	for i := range min(size, tries) {
		if id := s.at((start + i) % size); !taken(id) {
			return id, true
		}
	}
	return 0, false
}
