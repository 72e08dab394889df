// Package selftest checks from inside a running prison, as the agent, whether the prison keeps its promises. Begin reading at [Run] and
// at probes in probes.go.
//
// A [probe] is a script that the prison's own shell runs, and a function on the host that evaluates its output. Properties that must be
// compared with the host (names, namespaces, file systems) are read inside and compared on the host. No information about the host goes
// into the prison, since the agent can read everything inside. So for the leak meter, all readable text is copied out, and the host
// searches it for words.
//
// The package needs only Exec of a backend, so it is the same for all backends. Package calls makes the system calls with arguments that
// no shell can pass. A copy of this program could make them as well as the runner of that package, which has 108 bytes, but would reveal
// the program's name. An agent at work has the same uid and can disturb a test, so that a promise looks broken. start --selftest tests
// the prison before the agent runs.
//
// Tests also run each probe, call and source of the leak meter without any isolation, where it must fail.
package selftest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/words"
)

// Subject is a running prison and its expected properties.
type Subject struct {
	Prison    prison.Prison
	Spec      prison.Spec      // the prison's spec; Env is ignored
	Variables []string         // names of the variables that were passed into the prison
	Isolation prison.Isolation // the isolation, including its known weaknesses
	Words     []Word           // words that the leak meter searches for

	image ofImage
}

// ofImage holds properties of the image. They are not secret, because the user has chosen the image.
type ofImage struct{ env, volumes []string }

// imaged is a prison that was made from an image.
type imaged interface {
	OfImage(ctx context.Context) (env, volumes []string, err error)
}

// nobody is the uid of a prison's first process if the agent could control a first process with the phantom's uid.
const nobody = "65534"

func (s Subject) ownKernel() bool { return s.Isolation.Lacks(prison.OwnKernel) }

// Word is a text that must not be readable inside.
type Word struct {
	Kind string // meaning of the text, such as "user name"
	Text string
}

// Result describes the test of one promise.
type Result struct {
	Name    string `json:"name"`
	Promise string `json:"promise"` // in words
	Tried   string `json:"tried"`   // what the probe does
	// Seen is the observed result. The agent has written a part of it: escape it.
	Seen string `json:"seen"`
	Kept bool   `json:"kept"`
	// Weaker reports that the promise is not kept, and that the prison's isolation lists this as a weakness.
	Weaker bool `json:"weaker"`
}

// Report is the result of all probes and of the leak meter.
type Report struct {
	Results []Result `json:"promises"`
	Leaks   Meter    `json:"leaks"`
}

// Kept reports whether every promise is kept, except for known weaknesses.
func (r Report) Kept() bool {
	return len(r.Leaks.Found) == 0 && !slices.ContainsFunc(r.Results, func(result Result) bool { return !result.Kept && !result.Weaker })
}

const (
	// probePatience limits the time of each command inside, because an agent can delay everything.
	probePatience = 30 * time.Second
	// A command that could not start is tried again: tries times in all, with a pause between them. The agent may have reached its
	// process limit for a moment.
	tries = 3
	pause = 300 * time.Millisecond
	// maxOutput limits the output of a command, in bytes.
	maxOutput = 32 << 20
	// maxSeen limits the part of the output that is shown, in bytes.
	maxSeen = 300
)

// Names returns the names of all promises, in the order in which [Run] tests them. Not every prison makes all of them.
func Names() (names []string) {
	for _, p := range probes() {
		names = append(names, p.name)
	}
	return names
}

// Run tests every promise. It returns an error if the prison does not run, or if ctx has ended.
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

// probe tests one promise.
type probe struct {
	name, promise, tried string
	// script runs inside with sh(1), in the workspace.
	script string
	// evaluate reads the script's output. It returns the observed result, and the reason if the promise is broken.
	evaluate func(s Subject, out string) (seen, broken string)
	// try replaces script and evaluate if one command is not enough.
	try func(ctx context.Context, s Subject) (seen, broken string, err error)
	// weaker lists the weaknesses of a prison that cannot keep the promise.
	weaker []prison.Missing
	// skip reports whether this prison does not make the promise.
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
		broken = untried.Error() // an untested promise is not kept
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
	seen, broken = p.evaluate(s, out)
	return seen, broken, nil
}

// untriedError reports that a command inside could not be run.
type untriedError struct {
	reason string
	early  bool // the command has not started, and can be tried again
}

func (e *untriedError) Error() string { return "could not be tried: " + e.reason }

// read runs a script inside and returns its output. The script must end with status 0.
func (s Subject) read(ctx context.Context, script string) (out string, err error) {
	for range tries {
		out, err = s.readOnce(ctx, script)
		if untried := (*untriedError)(nil); !errors.As(err, &untried) || !untried.early {
			break
		}
		time.Sleep(pause)
	}
	return out, err
}

func (s Subject) readOnce(ctx context.Context, script string) (string, error) {
	limited, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	out, errOut := prison.Capped{Max: maxOutput}, prison.Capped{Max: maxSeen}
	status, err := s.Prison.Exec(limited, prison.Process{Argv: []string{"sh", "-c", script}, Stdout: &out, Stderr: &errOut})
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

// shorten turns a text into one short line.
func shorten(text string) string {
	return words.Clip(strings.Join(strings.Fields(text), " "), maxSeen)
}

// lines returns the non-empty lines of a text.
func lines(text string) (all []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\n"); line != "" {
			all = append(all, line)
		}
	}
	return all
}
