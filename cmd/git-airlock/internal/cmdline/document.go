package cmdline

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/network"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/selftest"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/words"
)

// RefusedHosts returns refused hosts for a document, with the commands that would allow what was refused. A host that the agent works without
// has its commands, too, because the project may need it, and the record does not show which program asked for the host.
func RefusedHosts(recent network.Recent) (all []ui.Refused) {
	for _, r := range recent.Records {
		t := network.TargetOf(r)
		refused := ui.Refused{Seq: r.Seq, Host: gitops.Text(t.Host).String(), Port: t.Port, Reason: gitops.Text(r.Reason).String(), Count: r.Count, Time: r.Time,
			Next: network.Proposed(recent.Rules, r, ui.Now()), Rules: network.Widenings(r)}
		if r.For(recent.Unneeded) {
			refused.Unneeded = recent.Agent
		}
		all = append(all, refused)
	}
	return all
}

// RefusedCertificate describes the last connection whose program did not accept the network's certificate, or returns nil.
func RefusedCertificate(recent network.Recent) *ui.RefusedCertificate {
	r := recent.Unaccepted
	if r == nil {
		return nil
	}
	return &ui.RefusedCertificate{Seq: r.Seq, Host: gitops.Text(r.Name).String(), Port: r.Port, Reason: gitops.Text(r.Reason).String(), Time: r.Time,
		Next: network.Proposed(recent.Rules, *r, ui.Now())}
}

// Credentials describes the credentials of a network for a document, with their uses. Their values are not known here.
func Credentials(rules control.Rules, uses []control.CredentialUse) (all []ui.NetworkCredential) {
	for _, c := range rules.Credentials {
		shown := ui.NetworkCredential{Name: c.Name, Source: c.Source, Hosts: network.HostsOf(c), Variables: c.Variables}
		if i := slices.IndexFunc(uses, func(u control.CredentialUse) bool { return u.Name == c.Name }); i >= 0 {
			u := uses[i]
			spent := c.Limit > 0 && u.Today >= c.Limit
			if spent && !u.SameDay(ui.Now()) { // a new day has its own limit
				if spent = false; u.Status == 429 {
					u.Status = 0
				}
			}
			shown.Value, shown.Requests, shown.Refused, shown.Status = u.Known, u.Requests, u.Status != 0 && u.Status < 500, u.Status
			shown.Ended, shown.Silent = u.Ended, int(u.Silence(ui.Now()).Seconds())
			if shown.Lost = network.IsLost(c, u); shown.Lost {
				shown.Renewal = network.Renewal(c)
			}
			if spent {
				shown.Limit = c.Limit
			}
			if !u.Last.IsZero() {
				shown.Last = &u.Last
			}
		}
		all = append(all, shown)
	}
	return all
}

// RefusedCredentials returns the credentials whose value a server refused last, or whose server failed or answered nothing last, or that the network has lost, for
// a document.
func RefusedCredentials(recent network.Recent) []ui.NetworkCredential {
	return slices.DeleteFunc(Credentials(recent.Rules.Rules, recent.Uses), func(c ui.NetworkCredential) bool { return c.Status == 0 && !c.Lost && c.Silent == 0 })
}

// FailingProxy describes the proxy of a network for a document, or returns nil if its last connection did not fail.
func FailingProxy(proxy string, f *control.ProxyFailure) *ui.FailingProxy {
	if proxy == "" || f == nil {
		return nil
	}
	return &ui.FailingProxy{Proxy: gitops.Text(proxy).String(), Reason: gitops.Text(f.Reason).String(), Target: gitops.Text(f.Target).String(), Time: f.Time, Next: network.ProxyNext(proxy, *f)}
}

// Holds returns holds for a document of an airlock whose prison runs, or does not.
func Holds(holds []ledger.Hold, runs bool) (all []ui.Hold) {
	for _, h := range holds {
		all = append(all, ui.Hold{Reason: string(h.Reason), Paths: h.Paths, Message: h.Message, Next: ledger.WithStart(h.Next, runs), Since: h.Since})
	}
	return all
}

// Waiting lists the commits on other inner refs than main for a document. While a command works on another ref, no hint checks out main:
// the command would go on there, and what it makes would land.
func Waiting(state promote.State, working bool) (all []ui.Waiting) {
	elsewhere := working && state.Elsewhere()
	for _, w := range state.OtherRefs {
		here := w.Name == cmp.Or(state.Head, "HEAD")
		x := ui.Waiting{Ref: w.Ref, Commits: w.Commits, Operation: state.Operation, Worked: elsewhere && here}
		if !elsewhere || state.Operation != "" {
			x.Next = hold.Merge(w.Name, state.Operation)
		}
		all = append(all, x)
	}
	return all
}

// EscapeReport escapes the text from inside.
func EscapeReport(r selftest.Report) selftest.Report {
	for i := range r.Results {
		r.Results[i].Seen = gitops.Text(r.Results[i].Seen).String()
	}
	for _, leaks := range [][]selftest.Leak{r.Leaks.Found, r.Leaks.Known} {
		for i := range leaks {
			leaks[i].Seen = gitops.Text(leaks[i].Seen).String()
		}
	}
	return r
}

// PrintReport prints the report of a selftest, escaped.
func PrintReport(w io.Writer, p ui.Paint, r selftest.Report) {
	r = EscapeReport(r)
	for _, result := range r.Results {
		word := p.Green("kept  ")
		switch {
		case result.Weaker:
			word = p.Yellow("weaker")
		case !result.Kept:
			word = p.Red("BROKEN")
		}
		fmt.Fprintf(w, "%s %-16s %s (%s): %s\n", word, result.Name, result.Promise, result.Tried, result.Seen)
	}
	for _, l := range r.Leaks.Found {
		fmt.Fprintf(w, "%s %s in %s: %s\n", p.Red("LEAK  "), l.Kind, l.Where, l.Seen)
	}
	for _, l := range r.Leaks.Known {
		fmt.Fprintf(w, "%s %s in %s: %s\n", p.Yellow("weaker"), l.Kind, l.Where, l.Seen)
	}
	fmt.Fprintf(w, "leak meter: %s in %d KiB from %s: %d found, %d known as weaker\n", words.Count(r.Leaks.Words, "word"),
		r.Leaks.Bytes>>10, words.Count(r.Leaks.Sources, "place"), len(r.Leaks.Found), len(r.Leaks.Known))
}

// LeftOut describes the variables that programs on the host do not get, because they lead into the work tree.
func LeftOut(led []hostenv.Dropped) (lines []string) {
	for _, d := range led {
		lines = append(lines, fmt.Sprintf("%s leads, or may lead, into the work tree; not passed to programs on the host: %q", d.Name, d.Value))
	}
	return lines
}
