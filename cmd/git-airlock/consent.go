package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
)

// consentKey is the setting, of any number of values, that holds the digests of what the user consented to. One that
// begins with an exclamation mark was refused. It is in the repository's own configuration, which no agent reaches.
const consentKey = "airlock.consent"

// wishes are what a setup asks for that only the user can give: whoever commits can write a setup, the agent too.
func (s commitSetup) wishes(container bool) (wishes []string) {
	if s.devcontainer() {
		wishes = append(wishes, "the environment is made as "+s.file+" says")
	}
	// Who consents to the one has seen the other: their digest is the same.
	if s.OS.Dockerfile != "" && (container || len(s.Env.Pass) > 0) {
		wishes = append(wishes, "an image is built from "+gitops.Escape(s.OS.Dockerfile))
	}
	if len(s.Env.Pass) > 0 {
		wishes = append(wishes, "these variables of yours are passed in: "+strings.Join(s.Env.Pass, ", "))
	}
	return wishes
}

// consents tells whether the user consents to the wishes of a setup: once, and again when what it is made of has
// changed. On a terminal they are asked.
func (a *app) consents(ctx context.Context, s commitSetup, wishes []string) (bool, error) {
	if len(wishes) == 0 {
		return true, nil
	}
	given, err := a.repo.Values(ctx, consentKey)
	if err != nil || slices.Contains(given, s.digest) {
		return err == nil, err
	}
	if slices.Contains(given, "!"+s.digest) || a.dry || !ui.CanAsk() {
		return false, nil
	}
	yes, err := ui.Ask(ctx, a.message, fmt.Sprintf("%s asks for this:\n  %s\nDo you consent, until it changes?", s.file, strings.Join(wishes, "\n  ")))
	if err != nil {
		return false, err
	}
	answer := s.digest
	if !yes {
		answer = "!" + answer
	}
	return yes, a.repo.Change(ctx, gitops.Call{Args: []string{"config", "--local", "--add", consentKey, answer}})
}

// refused tells whether the user has said no.
func (a *app) refused(ctx context.Context, s commitSetup) (bool, error) {
	given, err := a.repo.Values(ctx, consentKey)
	return slices.Contains(given, "!"+s.digest), err
}

// consentHint is the command by which the user consents.
func (s commitSetup) consentHint() string { return "git config --add " + consentKey + " " + s.digest }

// noConsent refuses to go on.
func (s commitSetup) noConsent(wishes []string) error {
	return &refusal{fmt.Sprintf("%s needs your consent: %s", s.file, strings.Join(wishes, "; ")),
		[]string{s.consentHint(), "git airlock start --no-recipe"}}
}
