// Package teams reads the policies that make a user's settings of the gate stricter: the team's in the repository, and
// the user's own file.
package teams

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
	"github.com/git-airlock/git-airlock/promote/policy"
)

// PolicyFileKey is the setting that names a user's own policy file, in the format of a team's.
const PolicyFileKey = "airlock.policyFile"

// Teams reads the policies. It keeps what it has read until the ref changes.
type Teams struct {
	Repo *gitops.Repository
	Ref  gitops.OID // value of [policy.TeamRef]; empty if there is none
	File string     // the user's own policy file, set by Apply; empty if there is none

	read gitops.OID // the value of Ref that team and err were read from
	team policy.Team
	err  error
}

// PolicyError reports that a policy cannot be read, and holds the commands that show it.
type PolicyError struct {
	Next []string
	err  error
}

func (e *PolicyError) Error() string { return e.err.Error() }

func (e *PolicyError) Unwrap() error { return e.err }

// Apply makes settings as strict as the user's policy file and the repository's policy. It returns the ids of the
// policies that it used. A policy that cannot be read is an error and never weakens the settings.
func (t *Teams) Apply(ctx context.Context, config gitops.Config, s policy.Settings) (policy.Settings, []gitops.OID, error) {
	var used []gitops.OID
	name := config.String(PolicyFileKey, "") // may begin with "~/", as in git's settings
	t.File = hostenv.FromHome(name)
	if name != "" {
		next := []string{"git config --show-origin " + PolicyFileKey}
		content, err := readPolicyFile(t.File)
		if err != nil {
			return s, used, &PolicyError{next, fmt.Errorf("setting %s: %w", PolicyFileKey, err)}
		}
		own, err := policy.ParseTeam(content)
		if err != nil {
			return s, used, &PolicyError{next, fmt.Errorf("%q: %w", name, err)}
		}
		s, used = s.With(own), append(used, gitops.HashObject(t.Repo.Format, "blob", content))
	}
	if t.Ref == "" {
		return s, used, nil
	}
	if t.read != t.Ref {
		t.team, t.err = t.parse(ctx)
		t.read = t.Ref
	}
	if t.err != nil {
		return s, used, t.err
	}
	return s.With(t.team), append(used, t.Ref), nil
}

// Named returns the addresses of the reviewers whom the repository's policy names, as Apply has read it.
func (t *Teams) Named() []string {
	if t.Ref == "" || t.read != t.Ref || t.err != nil {
		return nil
	}
	return t.team.Reviewers()
}

// Reviewers returns the addresses of the reviewers whom the repository's policy names.
func Reviewers(ctx context.Context, repo *gitops.Repository) ([]string, error) {
	ref, err := repo.Ref(ctx, policy.TeamRef)
	if err != nil || ref == "" {
		return nil, err
	}
	team, err := (&Teams{Repo: repo, Ref: ref}).parse(ctx)
	return team.Reviewers(), err
}

func (t *Teams) parse(ctx context.Context) (policy.Team, error) {
	content, err := t.Repo.File(ctx, t.Ref, policy.TeamFile, policy.TeamLimit)
	if err != nil {
		// The ref may lack that file, or the object may be missing. The command shows git's own message.
		return policy.Team{}, unreadable("git show "+policy.TeamRef, err)
	}
	team, err := policy.ParseTeam(content)
	switch {
	case err == nil:
		return team, nil
	case gitops.HashObject(t.Repo.Format, "blob", content) == t.Ref: // the ref names the file itself instead of a tree
		return team, unreadable("git show "+policy.TeamRef, err)
	}
	return team, unreadable("git show "+policy.TeamRef+":"+policy.TeamFile, err)
}

// unreadable reports that the repository's policy cannot be read, with a command that shows it.
func unreadable(show string, err error) error {
	return &PolicyError{[]string{show}, fmt.Errorf("%s: %w", policy.TeamRef, err)}
}

// ReadPolicy reads the settings of the policy gate in a repository: the user's settings, made stricter by all
// policies.
func ReadPolicy(ctx context.Context, repo *gitops.Repository, config gitops.Config) (policy.Settings, error) {
	own, err := policy.ReadSettings(config)
	if err != nil {
		return own, err
	}
	ref, err := repo.Ref(ctx, policy.TeamRef)
	if err != nil {
		return own, err
	}
	made, _, err := (&Teams{Repo: repo, Ref: ref}).Apply(ctx, config, own)
	return made, err
}

// readPolicyFile reads the user's policy file.
func readPolicyFile(name string) ([]byte, error) {
	if !filepath.IsAbs(name) {
		return nil, fmt.Errorf("%q is not an absolute path", gitops.Text(name))
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > policy.TeamLimit {
		return nil, fmt.Errorf("%q is not a regular file of at most %d bytes", gitops.Text(name), policy.TeamLimit)
	}
	return os.ReadFile(name)
}
