// Package selftest asks a running prison, from inside and as the agent, whether it keeps what a prison promises.
//
// A [probe] is a script that the prison's own shell runs, and a judgement on the host over what it printed. What
// must be compared with the host (names, namespaces, file systems) is read out and compared there: nothing about
// the host is handed in, since everything inside can be read by the agent. What no shell can try, system calls with odd
// arguments, package calls makes.
//
// This needs nothing of a backend but Exec, so it is the same for all of them. Words or paths to
// search for are never handed in, since the agent could read them there: for the leak meter, all
// readable text is brought out and searched on the host. A copy of this program would make the odd
// system calls as well as the program of 108 bytes does, and would bring the tool's name along. An
// agent at work has the same uid and can disturb a test, so that a promise looks broken. start
// --selftest tests the prison before the agent runs.
//
// Each probe, call and source of the leak meter is also run on a subject without any wall, and must
// fail there.
package selftest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison"
)

// Subject is a running prison with what is known of it outside.
type Subject struct {
	Prison    prison.Prison
	Spec      prison.Spec      // what it was made of
	Isolation prison.Isolation // what it is, and what is known to be missing
	Words     []Word           // what the leak meter looks for

	image ofImage
}

// ofImage is what an image brings along, which is nobody's secret: whoever asked for the image asked for it.
type ofImage struct{ env, volumes []string }

// imaged is a prison that has an image.
type imaged interface {
	OfImage(ctx context.Context) (env, volumes []string, err error)
}

// nobody is the uid of the first process where the phantom's would not keep the agent out of it.
const nobody = "65534"

func (s Subject) ownKernel() bool { return s.Isolation.Lacks(prison.OwnKernel) }

// Word is something that must not be readable inside.
type Word struct {
	Kind string // what it is, such as "user name"
	Text string
}

// Result tells how one promise was tried.
type Result struct {
	Name    string `json:"name"`
	Promise string `json:"promise"`
	Tried   string `json:"tried"`
	// Seen is what came of it. Part of it is the agent's: escape it.
	Seen string `json:"seen"`
	Kept bool   `json:"kept"`
	// Weaker says that it is not kept and that this is no news: the prison's isolation says so.
	Weaker bool `json:"weaker"`
}

// Report is the outcome of all probes and of the leak meter.
type Report struct {
	Results []Result `json:"promises"`
	Leaks   Meter    `json:"leaks"`
}

// Kept reports whether every promise is, but for what was known to be weaker.
func (r Report) Kept() bool {
	for _, result := range r.Results {
		if !result.Kept && !result.Weaker {
			return false
		}
	}
	return len(r.Leaks.Found) == 0
}

const (
	// probePatience bounds each look inside, where an agent may hold everything up.
	probePatience = 30 * time.Second
	// tries and pause are for a look that could not begin: an agent may have all the processes for a moment that it may have.
	tries = 3
	pause = 300 * time.Millisecond
	// maxOutput bounds what one look brings out.
	maxOutput = 32 << 20
	// maxSeen bounds what is shown of it.
	maxSeen = 300
)

// Run tries every promise. The error says that the prison does not run, or that ctx has ended.
func Run(ctx context.Context, s Subject) (Report, error) {
	var report Report
	if p, ok := s.Prison.(imaged); ok {
		var err error
		if s.image.env, s.image.volumes, err = p.OfImage(ctx); err != nil {
			return report, err
		}
	}
	for _, p := range probes() {
		if p.skip != nil && p.skip(s) {
			continue
		}
		r, err := p.run(ctx, s)
		if err != nil {
			return report, err
		}
		report.Results = append(report.Results, r)
	}
	var err error
	report.Leaks, err = measure(ctx, s)
	return report, err
}

// probe tries one promise.
type probe struct {
	name, promise, tried string
	// script runs inside by sh(1), in the workspace.
	script string
	// judge looks at what the script printed: what was seen, and why the promise is broken if it is.
	judge func(s Subject, out string) (seen, broken string)
	// instead of script and judge, for what takes more than one look.
	try func(ctx context.Context, s Subject) (seen, broken string, err error)
	// weaker are the weaknesses of a prison that cannot keep the promise.
	weaker []prison.Missing
	// skip tells what was not promised to this prison.
	skip func(s Subject) bool
}

func (p probe) run(ctx context.Context, s Subject) (Result, error) {
	r := Result{Name: p.name, Promise: p.promise, Tried: p.tried}
	try := p.try
	if try == nil {
		try = p.tryScript
	}
	seen, broken, err := try(ctx, s)
	var untried *untriedError
	switch {
	case errors.As(err, &untried):
		broken = untried.Error() // a promise that nobody looked at is not kept
	case err != nil:
		return r, fmt.Errorf("probe %s: %w", p.name, err)
	}
	r.Kept = broken == ""
	if r.Seen = seen; !r.Kept {
		r.Seen = broken
	}
	r.Weaker = !r.Kept && slices.ContainsFunc(p.weaker, s.Isolation.Lacks)
	r.Seen = shorten(r.Seen)
	return r, nil
}

func (p probe) tryScript(ctx context.Context, s Subject) (seen, broken string, err error) {
	out, err := s.read(ctx, p.script)
	if err != nil {
		return "", "", err
	}
	seen, broken = p.judge(s, out)
	return seen, broken, nil
}

// untriedError says that a look inside did not come about.
type untriedError struct {
	reason string
	early  bool // nothing has begun: it can be tried again
}

func (e *untriedError) Error() string { return "could not be tried: " + e.reason }

// read runs a script inside and returns what it prints. A script must end with status 0.
func (s Subject) read(ctx context.Context, script string) (string, error) {
	return s.readFrom(ctx, nil, "sh", "-c", script)
}

func (s Subject) readFrom(ctx context.Context, stdin []byte, argv ...string) (out string, err error) {
	for range tries {
		out, err = s.readOnce(ctx, stdin, argv...)
		if untried := (*untriedError)(nil); !errors.As(err, &untried) || !untried.early {
			break
		}
		time.Sleep(pause)
	}
	return out, err
}

func (s Subject) readOnce(ctx context.Context, stdin []byte, argv ...string) (string, error) {
	look, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	out, errOut := prison.Capped{Max: maxOutput}, prison.Capped{Max: maxSeen}
	p := prison.Process{Argv: argv, Stdout: &out, Stderr: &errOut}
	if stdin != nil {
		p.Stdin = bytes.NewReader(stdin)
	}
	status, err := s.Prison.Exec(look, p)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return "", &untriedError{reason: fmt.Sprintf("no answer in %v", probePatience)}
	case errors.Is(err, prison.ErrNotRunning):
		return "", err
	case err != nil:
		return "", &untriedError{reason: err.Error(), early: true}
	case status != 0:
		return "", &untriedError{reason: fmt.Sprintf("status %d: %s", status, strings.TrimSpace(out.String()+" "+errOut.String()))}
	}
	return out.String(), nil
}

// shorten makes one short line of a text.
func shorten(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxSeen {
		text = strings.ToValidUTF8(text[:maxSeen], "") + "..."
	}
	return text
}

// lines returns the lines of a text that are not empty.
func lines(text string) (all []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\n"); line != "" {
			all = append(all, line)
		}
	}
	return all
}
