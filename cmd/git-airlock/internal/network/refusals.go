package network

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/ledger"
)

// refusals returns one record for each target that was refused after a moment, the newest first, with the number of attempts. It
// leaves out targets that the rules allow by now, and records of several targets. In an open network these are the targets that a rule
// denied: the others were refused for their addresses or contents.
func refusals(records []control.Record, rules Rules, after, now time.Time, most int) (all []control.Record) {
	at := map[Target]int{}
	for _, r := range slices.Backward(records) {
		t := TargetOf(r)
		if r.Kind != control.KindRefusal || t.Host == "" || r.Path == control.OtherPaths || !r.Time.After(after) {
			continue
		}
		r.Count = max(r.Count, 1)
		if i, known := at[t]; known {
			all[i].Count += r.Count
			continue
		}
		if byRule := !rules.Open || r.Denied(); len(all) == most || byRule && decide(rules, t, now).Allowed {
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

// Next returns the commands that would allow what a record is about, the narrowest first. There is none where no rule helps.
func Next(rules Rules, r control.Record, at time.Time) (next []string) {
	now := DecideAgain(rules, r, at)
	switch {
	case r.Final():
		return nil
	case rules.Lockdown:
		return []string{"git airlock net unlock"}
	case now.Rule != nil && !now.Allowed:
		return []string{Lift(rules.Rules, *now.Rule)}
	case r.Unaccepted():
		next, _ = accepting(rules, r, at)
		return next
	case rules.Open:
		return nil
	}
	for i, rule := range Widenings(r) {
		allow := "git airlock net allow " + gitops.Pasteable(rule)
		if next = append(next, allow); i == 0 {
			next = append(next, allow+" --for 1h", allow+" --save")
		}
	}
	return next
}

// proxyPorts are ports at which proxies listen by default: those of SOCKS, squid, Privoxy, Polipo and Tor, and two that many HTTP proxies have.
var proxyPorts = []uint16{1080, 3128, 3129, 8080, 8118, 8123, 8888, 9050, 9150}

// Proposed returns the commands that may be typed without more words, as [Next] does. A port of proxies and a certificate that was not accepted
// need words, which another command prints.
func Proposed(rules Rules, r control.Record, at time.Time) []string {
	next := Next(rules, r, at)
	if proxy := atProxy(r) && len(next) > 0 && strings.Contains(next[0], " net allow "); !proxy && !r.Unaccepted() {
		return next
	}
	return []string{"git airlock net explain " + strconv.FormatUint(r.Seq, 10)}
}

// atProxy reports whether a record may be of a connection to a proxy. No byte of it was read.
func atProxy(r control.Record) bool {
	return r.Proto == control.ProtoTCP && slices.Contains(proxyPorts, r.Port) && len(Widenings(r)) > 0
}

// Widenings returns the rules that would allow what a record is about, as [suggestions] does. There is none where no rule helps.
func Widenings(r control.Record) []string {
	if r.Final() || r.Unaccepted() || r.Path == control.OtherPaths {
		return nil
	}
	return suggestions(TargetOf(r))
}

// Risks returns what a user may not expect of what [Next] proposes, or why it proposes nothing for a certificate that was not accepted.
func Risks(rules Rules, r control.Record, at time.Time) (all []string) {
	if now := DecideAgain(rules, r, at); r.Unaccepted() && !rules.Lockdown && (now.Rule == nil || now.Allowed) {
		_, text := accepting(rules, r, at)
		return []string{text}
	}
	for _, text := range Widenings(r) {
		all = append(all, Warnings([]control.Rule{{Text: text}})...)
	}
	if atProxy(r) {
		all = append(all, fmt.Sprintf("if %s is a proxy, a rule for it opens everything that the proxy reaches, past all other rules, and the record will not name it; %s is the setting for a proxy of your own network",
			gitops.Text(TargetOf(r).String()), UpstreamKey))
	}
	return all
}

// DecideAgain returns the answer of rules about what a record is about. Rules do not change a refusal that no rule ends.
func DecideAgain(rules Rules, r control.Record, at time.Time) Answer {
	if r.Final() {
		return Answer{Reason: r.Reason}
	}
	return decide(rules, TargetOf(r), at)
}

// Lift returns the command that ends one of the denials of rules, or shows where it is set.
func Lift(rules control.Rules, denial control.Rule) string {
	const stop = "git airlock stop && "
	switch option, source := origin(denial); source {
	case live:
		return "git airlock net allow " + gitops.Pasteable(denial.Text)
	case fromCommand: // the airlock keeps it
		return stop + "git -c " + DenyKey + "= airlock start"
	case denyOption: // the airlock keeps it, and all options are replaced together
		var others []string
		for _, r := range rules.Deny {
			other, source := origin(r)
			if arg := " --deny " + gitops.Pasteable(other); source == denyOption && other != option && !slices.Contains(others, arg) {
				others = append(others, arg)
			}
		}
		if len(others) == 0 {
			others = []string{" --deny ''"}
		}
		return stop + "git airlock start" + strings.Join(others, "")
	case fromPolicy:
		return "git airlock policy"
	}
	return "git config --show-origin --get-all " + DenyKey
}

// origin returns the text that brought a rule, which may name a set, and its source.
func origin(r control.Rule) (text, source string) {
	if set, source, ok := strings.Cut(r.Source, ", "); ok && strings.HasPrefix(set, "@") {
		return set, source
	}
	return r.Text, r.Source
}

// recentWindow is how old a refusal may be that the status shows.
const recentWindow = time.Hour

// shownRefusals bounds the refused hosts that are shown, and countedRefusals those that are counted.
const shownRefusals, countedRefusals = 5, 100

// Recent lists the recent refusals and failures of a network, with its current rules.
type Recent struct {
	Rules   Rules
	Records []control.Record // one a host, the newest first, with the number of attempts; without what is allowed by now
	More    int              // the number of further such hosts, which is bounded
	Uses    []control.CredentialUse
	Proxy   *control.ProxyFailure // nil unless the last connection through the proxy failed
	// Unaccepted is the last connection whose program did not accept the network's certificate, see [Unaccepted].
	Unaccepted *control.Record
	// Agent is the agent of the airlock, and Unneeded are hosts that it asks for and works without.
	Agent    string
	Unneeded []string
}

// RecentRefusals returns what a network, whose prison runs or not, has refused in the last hour. If its files cannot be read, it returns none.
func RecentRefusals(dir string, open, runs bool, now time.Time) Recent {
	read, err := control.ReadRules(dir)
	if err != nil {
		return Recent{}
	}
	records, err := ledger.Tail(dir)
	if err != nil {
		return Recent{}
	}
	rules := Rules{read, open}
	recent := Recent{Rules: rules, Records: refusals(records, rules, now.Add(-recentWindow), now, countedRefusals)}
	if recent.More = max(0, len(recent.Records)-shownRefusals); recent.More > 0 {
		recent.Records = recent.Records[:shownRefusals]
	}
	var unaccepted Unaccepted
	for _, r := range records {
		if r.Time.After(now.Add(-recentWindow)) {
			unaccepted.Add(r)
		}
	}
	recent.Unaccepted = unaccepted.Last
	if state, err := control.ReadState(dir); err == nil && runs { // a holder that was killed leaves the file
		recent.Uses, recent.Proxy = state.Credentials, state.Proxy
	} else {
		recent.Uses = control.LastUses(dir)
	}
	return recent
}
