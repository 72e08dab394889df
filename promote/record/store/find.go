package store

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/record"
)

// NotFound is the error of a name that stands for no run, or for several.
type NotFound struct {
	Name string
	Like []string // names that it could stand for
}

func (e *NotFound) Error() string {
	if len(e.Like) > 0 {
		return fmt.Sprintf("%q can be the run %s", gitops.Text(e.Name), strings.Join(e.Like, " or "))
	}
	return fmt.Sprintf("there is no run %q", gitops.Text(e.Name))
}

// Find returns the run with a name: its number ("3"), "<session>/3", the full name of its ref, or "last" for the newest
// run. session is that of the airlock here, or empty. A number, and "last", stand for a run of that session, if the session has runs.
func Find(all []Entry, name, session string) (Entry, error) {
	var here []Entry
	for _, e := range all {
		if e.Session == session {
			here = append(here, e)
		}
		if name == e.Ref || name == e.Name() || record.RefPrefix+name == e.Ref {
			return e, nil
		}
	}
	if len(here) > 0 {
		all = here
	}
	if name == "last" && len(all) > 0 {
		return newest(all), nil
	}
	var like []Entry
	for _, e := range all {
		if n, err := strconv.Atoi(name); err == nil && n == e.Number {
			like = append(like, e)
		}
	}
	if len(like) == 1 {
		return like[0], nil
	}
	missing := &NotFound{Name: name}
	for _, e := range like {
		missing.Like = append(missing.Like, e.Name())
	}
	return Entry{}, missing
}

// newest returns the last run of a session by number: the clock may have been set back since an earlier one. Of several sessions, it is the
// one whose last run has the latest end. Without manifests, it is the last one in the order of [Refs].
func newest(all []Entry) Entry {
	last := map[string]Entry{} // by session
	for _, e := range all {
		if e.Number > last[e.Session].Number {
			last[e.Session] = e
		}
	}
	return slices.MaxFunc(slices.Collect(maps.Values(last)), func(a, b Entry) int {
		return cmp.Or(a.Manifest.Ended.Compare(b.Manifest.Ended), cmp.Compare(a.Session, b.Session))
	})
}
