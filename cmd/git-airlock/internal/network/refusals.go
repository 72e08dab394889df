package network

import (
	"slices"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/egress/control"
)

// Refusals returns one record for each target that was refused after a moment, the newest first, with the number of attempts. It
// leaves out targets that the rules allow by now, and records of no single target.
func Refusals(records []control.Record, rules control.Rules, after, now time.Time, most int) []control.Record {
	all := []control.Record{}
	at := map[Target]int{}
	for _, r := range slices.Backward(records) {
		t := TargetOf(r)
		if r.Kind != control.KindRefusal || t.Host == "" || !r.Time.After(after) {
			continue
		}
		r.Count = max(r.Count, 1)
		if i, known := at[t]; known {
			all[i].Count += r.Count
			continue
		}
		if len(all) == most || Judge(rules, t, now).Allowed {
			continue
		}
		at[t] = len(all)
		all = append(all, r)
	}
	return all
}

// Shown returns a record whose texts are escaped, for JSON that a terminal may show.
func Shown(r control.Record) control.Record {
	for _, text := range []*string{&r.Name, &r.Address, &r.Rule, &r.Reason, &r.Method, &r.Path} {
		*text = gitops.Text(*text).String()
	}
	return r
}

// Next returns the commands that would allow what a record is about, the narrowest first.
func Next(rules control.Rules, r control.Record, at time.Time) (next []string) {
	t := TargetOf(r)
	now := Judge(rules, t, at)
	switch {
	case rules.Lockdown:
		return []string{"git airlock net unlock"}
	case now.Rule != nil && !now.Allowed && now.Rule.Source != Live:
		return []string{"git config --show-origin --get-all " + DenyKey}
	}
	for i, rule := range Suggestions(t, r.Address) {
		allow := "git airlock net allow " + gitops.Pasteable(rule)
		if i == 0 {
			next = append(next, allow, allow+" --for 1h", allow+" --save")
			continue
		}
		next = append(next, allow)
	}
	return next
}
