package ui

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/words"
)

// statusText prints a document as text: one fact a line, each with a key in front.
type statusText struct {
	bytes.Buffer
	paint Paint
	now   time.Time
}

func (p *statusText) line(key, format string, args ...any) {
	fmt.Fprintf(p, "%-10s %s\n", key, fmt.Sprintf(format, args...))
}

func (p *statusText) next(line string) {
	command, comment := words.CutComment(line)
	p.line("next", "%s", p.paint.Bold(command))
	p.comment(comment)
}

// comment prints the comment on the command of the line before, if there is one.
func (p *statusText) comment(text string) {
	if text != "" {
		p.line("", "  # %s", text)
	}
}

// alarm prints a fact that needs an action of the user.
func (p *statusText) alarm(key, format string, args ...any) {
	fmt.Fprintf(p, "%s %s\n", p.paint.Red(fmt.Sprintf("%-10s", key)), fmt.Sprintf(format, args...))
}

// Print prints a document as text: the airlock, landed commits, pending commits with the reasons, and the next commands.
func (d Document) Print(w io.Writer, p Paint, now time.Time) error {
	pic := &statusText{paint: p, now: now}
	pic.airlock(d)
	pic.promotion(d)
	pic.inside(d)
	pic.failingProxy(d.FailingProxy)
	pic.refusedCredentials(d.RefusedCredentials)
	pic.refusedCertificate(d.RefusedCertificate)
	pic.refusals(d.Refusals, d.MoreRefusals)
	pic.advice(d)
	_, err := pic.WriteTo(w)
	return err
}

func (p *statusText) airlock(d Document) {
	state := map[string]func(string) string{"running": p.paint.Green, "broken": p.paint.Red}[d.State]
	if state == nil {
		state = p.paint.Yellow
	}
	began := ""
	if t := d.Began; !t.IsZero() {
		began = ", created " + ago(t, p.now)
	}
	p.line("airlock", "%s on %s, %s%s", d.ID, p.paint.Bold(gitops.Text(d.Branch).String()), state(d.State), began)
	p.line("workspace", "%s, as uid %d", d.Workspace, d.UID)
	network := d.Isolation.Network
	if d.Isolation.Lockdown {
		network += " (" + p.paint.Red(lockedDown) + ")"
	}
	p.line("prison", "%s (%s), network %s, %s memory, %s, %d pids", d.Backend, d.BackendReason,
		network, d.Isolation.Limits.Memory, cpusText(d.Isolation.Limits.CPUs), d.Isolation.Limits.PIDs)
	if d.Image != "" {
		p.line("image", "%s", gitops.Text(d.Image))
	}
	for _, weaker := range d.Isolation.Weaker {
		p.line("weaker", "%s", weaker)
	}
	for _, line := range d.Filters {
		p.line("filters", "%s", line)
	}
	for _, line := range d.LeftOut {
		p.line("environment", "%s", line)
	}
}

func (p *statusText) promotion(d Document) {
	last := ""
	if d.LastLandedAt != nil && d.Landed > 0 {
		last = ", the last " + ago(*d.LastLandedAt, p.now)
	}
	p.line("landed", "%s%s", words.Count(d.Landed, "commit"), last)
	if len(d.Flagged) > 0 {
		p.line("flagged", "%s", flags(d.Flagged))
	}
	for i, x := range d.Rebased {
		if i == pathsShown {
			p.line("", "and %d more", len(d.Rebased)-i)
			break
		}
		p.line("rebased", "landed before, as %.12s, and does not land again: %s", x.Commit, x.Subject)
	}
	p.pending(d)
	if text := d.Review.String(); text != "" {
		p.line("review", "%s: git airlock review", text)
	}
	for _, h := range d.Holds {
		p.hold(h)
	}
	if d.LandingSince != nil {
		p.alarm("landing", "began %s, and git or a filter is still writing the files", ago(*d.LandingSince, p.now))
	}
	if d.Failure != "" {
		p.alarm("failing", "%s", d.Failure)
		for _, command := range d.Mend {
			p.next(command)
		}
		if p.next("git airlock promote  # tries again, as the daemon does"); d.Daemon.Running {
			p.next("git airlock start  # begins the daemon again, with this environment")
		}
	} else if d.Pending > 0 && len(d.Holds) == 0 && !d.Daemon.Running {
		p.next("git airlock promote") // no daemon is running to do it
	}
	if d.Syncing && !d.SyncWaits { // while one waits, the daemon tries it all the time
		p.alarm("sync", "not finished; the agent may have a part of your files")
		p.next("git airlock sync  # finishes it, as the daemon does")
	}
	if d.SyncWaits {
		p.line("sync", "your newer commits come when no work of the agent is in the way: git airlock sync")
	}
}

// pending prints the commits that have not landed, with a command that shows them. A refused commit has no outer form, so that
// only the inner repository can show it. Both commands show what a merge changes. The agent's git can be too old for --diff-merges.
func (p *statusText) pending(d Document) {
	if named := min(d.Named, d.Pending); named > 0 {
		p.line("pending", "%s: git log -p --diff-merges=first-parent ..airlock/%s/pending", p.paint.Yellow(words.Count(named, "commit")), d.ID)
	}
	if inner := d.Pending - d.Named; inner > 0 {
		p.line("pending", "%s only in the workspace: %sgit airlock visit -- git log -p -m %.12s..main",
			p.paint.Yellow(words.Count(inner, "commit")), d.startFirst(), d.Newest)
	}
}

// String returns the numbers that are not zero, in words. Without a mode nothing waits for a verdict.
func (r Review) String() string {
	if r.Mode == "off" {
		r.Waiting = 0
	}
	var parts []string
	for _, n := range []struct {
		n    int
		text string
	}{{r.Waiting, "to review"}, {r.Approved, "approved"}, {r.Asked, "asked for a fix"}, {r.Blocked, "blocked"}, {r.Rejected, "rejected"}, {r.Undone, "undone"}} {
		if n.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n.n, n.text))
		}
	}
	return strings.Join(parts, ", ")
}

// pathsShown bounds the paths of a hold in the text. The JSON document has all of them.
const pathsShown = 10

func (p *statusText) hold(h Hold) {
	p.alarm("held", "%s: %s%s", p.paint.Red(h.Reason), h.Message, p.since(h.Since))
	for i, path := range h.Paths {
		if i == pathsShown {
			p.line("", "  and %d more", len(h.Paths)-i)
			break
		}
		p.line("", "  %s", path)
	}
	for _, next := range h.Next {
		p.next(next)
	}
}

// since returns the time since t as text, or an empty string if it is too short to matter.
func (p *statusText) since(t time.Time) string {
	if t.IsZero() || p.now.Sub(t) < time.Minute {
		return ""
	}
	return " (since " + span(p.now.Sub(t)) + ")"
}

func (p *statusText) inside(d Document) {
	if d.SetupFailure != "" {
		p.alarm("setup", "%s", gitops.Text(d.SetupFailure))
		if d.State == "running" {
			p.next("git airlock start  # runs it again, and what follows it")
		}
	}
	start := d.startFirst()
	here := d.Uncommitted
	for _, x := range d.Places {
		here -= x.Uncommitted
	}
	if here > 0 {
		p.line("inside", "%s not committed: %sgit airlock visit -- git status", words.Count(here, "changed path"), start)
	}
	for i, work := range d.Works {
		next, comment := words.CutComment(d.Places[i].Next)
		p.line("inside", "%s: %s%s", work, start, next)
		p.comment(comment)
	}
	for _, x := range d.Waiting {
		why := "which does not land by itself"
		switch {
		case x.Operation != "":
			why = "while " + words.Indefinite(x.Operation) + " is in progress"
		case x.Worked:
			why = "on which the agent works"
		}
		next, comment := words.CutComment(x.Next)
		if next != "" {
			why += ": " + start + next
		}
		p.line("inside", "%s on %s, %s", words.Count(x.Commits, "commit"), x.Ref, why)
		p.comment(comment)
	}
	if c := d.Command; c != nil {
		state := p.paint.Green(c.State)
		if c.Exit != nil {
			state = fmt.Sprintf("exited with status %d", *c.Exit)
			if *c.Exit == killed {
				state += " (killed)"
			}
		}
		p.line("command", "%s: %s", gitops.Text(strings.Join(c.Argv, " ")), state)
		if c.Again != "" {
			p.next(c.Again + "  # again; its output: git airlock visit --log")
		}
	}
}

// killed is the status of a command that SIGKILL ended.
const killed = 137

// startFirst returns the text that goes before a visit: the command that starts the prison, unless the prison is running.
func (d Document) startFirst() string {
	if d.State == "running" {
		return ""
	}
	return "git airlock start && "
}

// advice prints the next command for an airlock that is not running.
func (p *statusText) advice(d Document) {
	if d.Lost != "" {
		p.alarm("lost", "the workspace %s is gone; start rebuilds it from the agent's commits on main", d.Lost)
	}
	if d.Ended != "" && !slices.ContainsFunc(d.Holds, func(h Hold) bool { return h.Message == d.Ended }) {
		p.alarm("ended", "%s", d.Ended)
	}
	switch d.State {
	case "broken":
		p.next("git airlock start")
	case "stopped":
		p.next("git airlock start  # or: git airlock clear")
	}
}

// flags summarises the findings in landed commits.
func flags(flagged []Flagged) string {
	of := map[string]int{}
	for _, f := range flagged {
		for _, rule := range f.Rules {
			of[rule]++
		}
	}
	var parts []string
	for _, rule := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, fmt.Sprintf("%s (%d)", rule, of[rule]))
	}
	return words.Count(len(flagged), "landed commit") + ": " + strings.Join(parts, ", ") + ": git airlock policy"
}

func ago(t, now time.Time) string { return span(now.Sub(t)) + " ago" }

// span formats a duration for people, in the largest unit that fits at least twice.
func span(d time.Duration) string {
	for _, unit := range []struct {
		name string
		of   time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}} {
		if d >= 2*unit.of {
			return words.Count(int(d/unit.of), unit.name)
		}
	}
	return words.Count(max(0, int(d/time.Second)), "second")
}

// cpusText returns a number of processor cores with its noun.
func cpusText(n string) string {
	if n == "1" {
		return "1 cpu"
	}
	return n + " cpus"
}
