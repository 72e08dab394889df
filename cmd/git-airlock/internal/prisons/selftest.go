package prisons

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/network"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/selftest"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// BrokenPromise is the error of a prison that does not keep its promises.
type BrokenPromise struct{ Report selftest.Report }

func (e *BrokenPromise) Error() string { return "the prison does not keep its promises" }

// Prove checks a prison that has just been started, and fails with a [BrokenPromise] if it does not keep its promises.
func (p Prisons) Prove(ctx context.Context, r airlock.Record) error {
	report, err := p.Selftest(ctx, r)
	if err != nil || report.Kept() {
		return err
	}
	report.Results = slices.DeleteFunc(report.Results, func(r selftest.Result) bool { return r.Kept || r.Weaker })
	return environment.Advise(&BrokenPromise{report}, "git airlock doctor", "git airlock start --selftest=false  # takes the prison as it is")
}

// Selftest checks the running prison of an airlock from inside.
func (p Prisons) Selftest(ctx context.Context, r airlock.Record) (selftest.Report, error) {
	records, err := p.Records(r)
	if err != nil {
		return selftest.Report{}, err
	}
	spec := p.Spec(r)
	spec.Record = records
	box, err := p.Attach(ctx, r)
	if err != nil {
		return selftest.Report{}, err
	}
	defer box.Close()
	unlock, err := p.Store.LockTest(ctx, r.ID)
	if err != nil {
		return selftest.Report{}, err
	}
	defer unlock()
	_, end := p.Report.Begin("trying the prison's walls")
	defer end()
	return selftest.Run(ctx, selftest.Subject{Prison: box, Spec: spec, Variables: append(variableNames(r), network.VariableNames(spec)...), Isolation: isolationOf(r), Words: p.words()})
}

// Leaks returns the words in a text that must not be readable inside, each with its kind.
func (p Prisons) Leaks(text string) (found []string) {
	for _, w := range selftest.Mentioned(p.words(), text) {
		found = append(found, fmt.Sprintf("%s (%s)", w.Kind, gitops.Text(w.Text)))
	}
	return found
}

// words returns the words that must not be readable inside.
func (p Prisons) words() []selftest.Word {
	words := []selftest.Word{{Kind: "this tool's name", Text: "airlock"}}
	add := func(kind, text string) {
		word := selftest.Word{Kind: kind, Text: text}
		if text != "" && !slices.ContainsFunc(words, func(w selftest.Word) bool { return w.Text == text }) {
			words = append(words, word)
		}
	}
	if u, err := user.Current(); err == nil {
		add("your login", u.Username)
		add("your home", u.HomeDir)
	}
	home, _ := os.UserHomeDir()
	add("your home", home)
	if u, err := identity.ResolveUser(p.Config); err == nil {
		add("your name", u.Name)
		add("your e-mail address", u.Mail)
	}
	host, _ := os.Hostname()
	add("this host's name", host)
	add("the repository's path", p.Repo.Top)
	add("the repository's path", filepath.Dir(p.Repo.CommonDir))
	return words
}

// variableNames returns the names of all variables that were passed into the prison of an airlock.
func variableNames(r airlock.Record) (names []string) {
	if r.Setup != nil {
		names = slices.Clone(r.Setup.Variables)
	}
	for _, v := range r.Variables {
		names = append(names, v.Name)
	}
	return names
}

// CheckInside returns an error if a prison does not have the requirements of a setup.
func (p Prisons) CheckInside(ctx context.Context, r airlock.Record, setup environment.Setup) error {
	open := func(ctx context.Context) (prison.Prison, error) { return p.Attach(ctx, r) }
	from := environment.System{Image: r.Image, Built: r.Built, Rootfs: r.Rootfs, Images: p.Traits(r).Images}
	return environment.Check(ctx, open, from, setup)
}
