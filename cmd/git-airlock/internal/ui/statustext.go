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
)

// statusText is a document on its way to people: one fact a line, what it is about before it.
type statusText struct {
	bytes.Buffer
	paint Paint
	now   time.Time
}

func (p *statusText) line(key, format string, args ...any) {
	fmt.Fprintf(p, "%-10s %s\n", key, fmt.Sprintf(format, args...))
}

// next is what to type.
func (p *statusText) next(command string) { p.line("next", "%s", p.paint.Bold(command)) }

// alarm is a fact that waits for the user to act.
func (p *statusText) alarm(key, format string, args ...any) {
	fmt.Fprintf(p, "%s %s\n", p.paint.Red(fmt.Sprintf("%-10s", key)), fmt.Sprintf(format, args...))
}

// Print shows a document to people: what there is and where, what has landed, what waits and why, and what to do.
func (d Document) Print(w io.Writer, p Paint, now time.Time) error {
	pic := &statusText{paint: p, now: now}
	pic.airlock(d)
	pic.promotion(d)
	pic.inside(d)
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
		began = ", begun " + ago(t, p.now)
	}
	p.line("airlock", "%s on %s, %s%s", d.ID, p.paint.Bold(gitops.Escape(d.Branch)), state(d.State), began)
	p.line("workspace", "%s, as uid %d", d.Workspace, d.UID)
	p.line("prison", "%s (%s), network %s, %s memory, %s cpus, %d pids", d.Backend, d.BackendReason,
		d.Isolation.Network, d.Isolation.Limits.Memory, d.Isolation.Limits.CPUs, d.Isolation.Limits.PIDs)
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
	if d.LastLandedAt != nil {
		last = ", the last " + ago(*d.LastLandedAt, p.now)
	}
	p.line("landed", "%s%s", Count(d.Landed, "commit"), last)
	if len(d.Flagged) > 0 {
		p.line("flagged", "%s", flags(d.Flagged))
	}
	if d.Pending > 0 {
		p.line("pending", "%s: git log -p ..airlock/%s/pending", p.paint.Yellow(Count(d.Pending, "commit")), d.ID)
	}
	for _, h := range d.Holds {
		p.hold(h)
	}
	if d.Failure != "" {
		p.alarm("failing", "%s", d.Failure)
		p.next("git airlock promote  # tries again, as the daemon does")
	} else if d.Pending > 0 && len(d.Holds) == 0 && !d.Daemon.Running {
		p.next("git airlock promote") // nobody else will
	}
}

// pathsShown bounds how many paths of a hold are shown to people; the JSON document has all.
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

// since says how long something has been so, if it is long enough to matter.
func (p *statusText) since(t time.Time) string {
	if t.IsZero() || p.now.Sub(t) < time.Minute {
		return ""
	}
	return " (since " + span(p.now.Sub(t)) + ")"
}

func (p *statusText) inside(d Document) {
	start := "git airlock start && " // nothing can be run in a prison that does not
	if d.State == "running" {
		start = ""
	}
	if d.Uncommitted > 0 {
		p.line("inside", "%s not committed: %sgit airlock visit -- git status", Count(d.Uncommitted, "changed path"), start)
	}
	for _, x := range d.Waiting {
		p.line("inside", "%s on %s, which does not land by itself: %s%s", Count(x.Commits, "commit"), x.Ref, start, x.Next)
	}
	if c := d.Command; c != nil {
		state := p.paint.Green(c.State)
		if c.Exit != nil {
			state = fmt.Sprintf("exited with status %d", *c.Exit)
		}
		p.line("command", "%s: %s", gitops.Escape(strings.Join(c.Argv, " ")), state)
	}
}

// advice says what to do about an airlock that does not run.
func (p *statusText) advice(d Document) {
	if d.Lost != "" {
		p.alarm("lost", "the workspace %s is gone; start makes it anew of what the agent had committed on main", d.Lost)
	}
	switch d.State {
	case "broken":
		p.next("git airlock start")
	case "stopped":
		p.next("git airlock start  # or: git airlock clear")
	}
}

// flags sums up what rules found in landed commits.
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
	return Count(len(flagged), "landed commit") + ": " + strings.Join(parts, ", ") + ": git airlock policy"
}

func ago(t, now time.Time) string { return span(now.Sub(t)) + " ago" }

// span is how people say how long something takes: in the largest unit that fits at least twice.
func span(d time.Duration) string {
	for _, unit := range []struct {
		name string
		of   time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}} {
		if d >= 2*unit.of {
			return Count(int(d/unit.of), unit.name)
		}
	}
	return Count(max(0, int(d/time.Second)), "second")
}
