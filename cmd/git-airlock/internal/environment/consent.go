package environment

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/recipe"
	"github.com/git-airlock/git-airlock/words"
)

// consentKey is the setting with the digests of the recipes that the user consented to. It can have several values. A value that
// begins with an exclamation mark was refused. The setting is in the outer repository's configuration, which no agent can write.
const consentKey = "airlock.consent"

// Wishes returns the requests of a setup that need the user's consent. Everybody who commits can write a setup, including the agent.
func (s Setup) Wishes(container bool) (wishes []string) {
	if s.Devcontainer() {
		wishes = append(wishes, "the environment is made as "+s.File+" says")
	}
	// Both requests are shown together, because consent to their common digest covers both.
	if s.OS.Dockerfile != "" && (container || len(s.Env.Pass) > 0) {
		wishes = append(wishes, "an image is built from "+gitops.Text(s.OS.Dockerfile).String()+s.copied())
	}
	if len(s.Env.Pass) > 0 {
		wishes = append(wishes, "your variables are passed to the agent: "+strings.Join(s.Env.Pass, ", "))
	}
	return wishes
}

// maxNamed is how many copied files a question about consent names.
const maxNamed = 8

// copied names the files of the commit that the Dockerfile copies, since its steps can execute them.
func (s Setup) copied() string {
	if len(s.context) == 0 {
		return ""
	}
	var names []string
	for _, f := range s.context {
		names = append(names, gitops.Text(path.Join(s.OS.Context, f.Name)).String())
	}
	return ", which copies " + words.List(names, maxNamed)
}

// Consents reports whether the user consents to the wishes of a setup. On a terminal it asks the user, once, and again when the
// setup has changed.
func (b Builder) Consents(ctx context.Context, s Setup, wishes []string) (bool, error) {
	if len(wishes) == 0 {
		return true, nil
	}
	given, err := b.Repo.Values(ctx, consentKey)
	if err != nil || slices.Contains(given, s.Digest) {
		return err == nil, err
	}
	if slices.Contains(given, "!"+s.Digest) || b.Dry || !b.Report.CanAsk() {
		return false, nil
	}
	yes, err := b.Report.Ask(ctx, fmt.Sprintf("%s asks for this:\n  %s\nDo you consent, until it changes?", s.File, strings.Join(wishes, "\n  ")))
	if err != nil {
		return false, err
	}
	answer := s.Digest
	if !yes {
		answer = "!" + answer
	}
	return yes, b.Repo.Change(ctx, gitops.Call{Args: []string{"config", "--local", "--add", consentKey, answer}})
}

// sayUnused prints that a setup is not used without the user's consent, unless the user has refused it. about is added to the message.
func (b Builder) sayUnused(ctx context.Context, s Setup, about string) error {
	given, err := b.Repo.Values(ctx, consentKey)
	if err == nil && !slices.Contains(given, "!"+s.Digest) {
		b.Report.Say("%s is not used without your consent%s", s.File, about)
		b.Report.Hint(s.consentHint())
	}
	return err
}

func (s Setup) consentHint() string { return "git config --add " + consentKey + " " + s.Digest }

func (s Setup) noConsent(wishes []string) error {
	return &Refusal{fmt.Sprintf("%s needs your consent: %s", s.File, strings.Join(wishes, "; ")),
		[]string{s.consentHint(), "git airlock start --no-recipe"}}
}

// Obey reads the setup of a tree. A devcontainer was written for other programs. If it cannot be used, or if the user does not
// consent to it, the setup is empty. With insist, missing consent is an error, because the caller needs a setup.
func (b Builder) Obey(ctx context.Context, tree gitops.OID, insist bool) (Setup, error) {
	s, err := b.Read(ctx, tree)
	if _, wrong := errors.AsType[recipe.Errors](err); wrong && s.Devcontainer() {
		b.Report.Say("%s is not used: %s", recipe.DevcontainerName, err)
		return Setup{}, nil
	}
	if err != nil {
		return s, err
	}
	b.WarnUncommitted(s)
	if !s.Devcontainer() {
		return s, nil
	}
	wishes := s.Wishes(true)
	yes, err := b.Consents(ctx, s, wishes)
	switch {
	case err != nil:
		return s, err
	case yes:
		if len(s.ignored) > 0 {
			b.Report.Say("%s: ignored: %s", s.File, gitops.Text(strings.Join(s.ignored, ", ")))
		}
		return s, nil
	case insist:
		return s, s.noConsent(wishes)
	}
	return Setup{}, b.sayUnused(ctx, s, "")
}

// Agree returns an error unless the user consents to the wishes of a setup.
func (b Builder) Agree(ctx context.Context, s Setup, container bool) error {
	wishes := s.Wishes(container)
	yes, err := b.Consents(ctx, s, wishes)
	if err == nil && !yes {
		err = s.noConsent(wishes)
	}
	return err
}
