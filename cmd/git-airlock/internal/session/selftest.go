package session

import (
	"context"
	"os"
	"os/user"
	"path/filepath"
	"slices"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/prison/selftest"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// prove fails with a [BrokenPromise] if a promise of a prison that has just been started is not kept.
func (s *Session) prove(ctx context.Context, r airlock.Record) error {
	report, err := s.Selftest(ctx, r)
	if err != nil || report.Kept() {
		return err
	}
	report.Results = slices.DeleteFunc(report.Results, func(r selftest.Result) bool { return r.Kept || r.Weaker })
	return environment.Advise(&BrokenPromise{report}, "git airlock doctor", "git airlock start --selftest=false  # takes the prison as it is")
}

// Selftest tries the walls of the running prison of an airlock from inside.
func (s *Session) Selftest(ctx context.Context, r airlock.Record) (selftest.Report, error) {
	spec, err := s.prisons().spec(r)
	if err != nil {
		return selftest.Report{}, err
	}
	box, err := s.prisons().attach(ctx, r)
	if err != nil {
		return selftest.Report{}, err
	}
	defer box.Close()
	_, end := s.Report.Begin("trying the prison's walls")
	defer end()
	return selftest.Run(ctx, selftest.Subject{Prison: box, Spec: spec, Isolation: isolationOf(r), Words: s.words()})
}

// words are the words that nothing inside may say.
func (s *Session) words() []selftest.Word {
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
	if u, err := identity.ResolveUser(s.Config); err == nil {
		add("your name", u.Name)
		add("your e-mail address", u.Mail)
	}
	host, _ := os.Hostname()
	add("this host's name", host)
	add("the repository's path", s.Repo.Top)
	add("the repository's path", filepath.Dir(s.Repo.CommonDir))
	return words
}
