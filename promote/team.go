package promote

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy"
)

// policyFileKey names a file with a policy of the same form as a team's, for one user.
const policyFileKey = "airlock.policyFile"

// teams are the policies that make a user's settings stricter.
type teams struct {
	repo *gitops.Repository
	ref  gitops.OID // value of [policy.TeamRef]; empty if there is none
	read gitops.OID // the value of which team and err are
	team policy.Team
	err  error
	file string // the user's own; empty if there is none
}

// PolicyError says that a policy cannot be read, and what to type to see it.
type PolicyError struct {
	Next []string
	err  error
}

func (e *PolicyError) Error() string { return e.err.Error() }

func (e *PolicyError) Unwrap() error { return e.err }

// apply makes settings as strict as the policies that there are: the user's file, and the one in the
// repository. It returns which ones those are. What cannot be read is an error, and weakens nothing.
func (t *teams) apply(ctx context.Context, config gitops.Config, s policy.Settings) (policy.Settings, []gitops.OID, error) {
	var used []gitops.OID
	name := config.String(policyFileKey, "")
	t.file = atHome(name)
	if name != "" {
		next := []string{"git config --show-origin " + policyFileKey}
		content, err := readPolicyFile(name)
		if err != nil {
			return s, used, &PolicyError{next, fmt.Errorf("setting %s: %w", policyFileKey, err)}
		}
		own, err := policy.ParseTeam(content)
		if err != nil {
			return s, used, &PolicyError{next, fmt.Errorf("%q: %w", name, err)}
		}
		s, used = s.With(own), append(used, gitops.HashObject(t.repo.Format, "blob", content))
	}
	if t.ref == "" {
		return s, used, nil
	}
	if t.read != t.ref {
		t.team, t.err = t.parse(ctx)
		t.read = t.ref
	}
	if t.err != nil {
		return s, used, t.err
	}
	return s.With(t.team), append(used, t.ref), nil
}

func (t *teams) parse(ctx context.Context) (policy.Team, error) {
	content, err := t.repo.File(ctx, t.ref, policy.TeamFile, policy.TeamLimit)
	if err != nil {
		// There may be no such file in it, or no such object: what there is, git says.
		return policy.Team{}, unreadable("git show "+policy.TeamRef, err)
	}
	team, err := policy.ParseTeam(content)
	switch {
	case err == nil:
		return team, nil
	case gitops.HashObject(t.repo.Format, "blob", content) == t.ref: // the file alone has no names in it
		return team, unreadable("git show "+policy.TeamRef, err)
	}
	return team, unreadable("git show "+policy.TeamRef+":"+policy.TeamFile, err)
}

// unreadable says of the policy in the repository that it cannot be read, and which command shows it.
func unreadable(show string, err error) error {
	return &PolicyError{[]string{show}, fmt.Errorf("%s: %w", policy.TeamRef, err)}
}

// ReadPolicy reads what the policy gate goes by in a repository: the user's settings, made stricter by what there is
// of policies.
func ReadPolicy(ctx context.Context, repo *gitops.Repository, config gitops.Config) (policy.Settings, error) {
	own, err := policy.ReadSettings(config)
	if err != nil {
		return own, err
	}
	ref, err := repo.Ref(ctx, policy.TeamRef)
	if err != nil {
		return own, err
	}
	made, _, err := (&teams{repo: repo, ref: ref}).apply(ctx, config, own)
	return made, err
}

// readPolicyFile reads a file of the user's, whose name may begin with "~/" as git's settings may.
func readPolicyFile(name string) ([]byte, error) {
	name = atHome(name)
	if !filepath.IsAbs(name) {
		return nil, fmt.Errorf("%q is not an absolute path", gitops.Escape(name))
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > policy.TeamLimit {
		return nil, fmt.Errorf("%q is no file of at most %d bytes", gitops.Escape(name), policy.TeamLimit)
	}
	return os.ReadFile(name)
}

// atHome is a path whose "~/" is the user's home, if they have one.
func atHome(name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return name
}
