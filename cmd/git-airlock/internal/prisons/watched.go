package prisons

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/durable"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker"
	"github.com/git-airlock/git-airlock/prison/passed"
	"github.com/git-airlock/git-airlock/prison/watch/execs"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/policy/secrets"
	"github.com/git-airlock/git-airlock/promote/teams"
)

// The recorder of a native prison begins here, with the rules of the gate for secrets.
func init() {
	execs.Begin(func(words []string) []string { return secrets.Default().Mask(words) })
}

// Settings for the programs in a prison.
const (
	recordKey = "airlock.exec.record"
	denyKey   = "airlock.exec.deny"
)

// passedName is the name of the file in the host state by which the values of variables are recognised, see [passed.Values].
const passedName = "passed.json"

// PassedValues returns what recognises the values of an airlock's variables, also of those of earlier starts.
func (p Prisons) PassedValues(r airlock.Record) (values passed.Values, err error) {
	_, err = durable.ReadJSON(filepath.Join(p.Store.Dir(r.ID), passedName), &values)
	return values, err
}

// learnValues notes how to recognise the values of variables NAME=VALUE, but for those that are committed.
func (p Prisons) learnValues(r airlock.Record, env []string, committed map[string]string) error {
	var secret []string
	for _, v := range env {
		if name, value, _ := strings.Cut(v, "="); committed[name] != value {
			secret = append(secret, value)
		}
	}
	values, err := p.PassedValues(r)
	if err != nil || !values.Learn(secret) {
		return err
	}
	return durable.WriteJSON(filepath.Join(p.Store.Dir(r.ID), passedName), values)
}

// StartSpec returns the specification with what only a start needs: the values of the variables, and how programs are watched.
// committed are the variables whose values are in the recipe. It refuses a record with an unknown network.
func (p Prisons) StartSpec(r airlock.Record, env []string, committed map[string]string, w Watched) (prison.Spec, error) {
	spec := p.Spec(r)
	_, err := prison.ParseNetwork(r.Isolation.Network)
	if err == nil {
		err = p.checkFolder(r)
	}
	if err == nil {
		err = p.learnValues(r, env, committed)
	}
	if err != nil {
		return spec, err
	}
	spec.Env, spec.Record, spec.Deny = env, w.record, w.deny
	return spec, nil
}

// Records reports whether the programs in an airlock's prison are recorded.
func (p Prisons) Records(r airlock.Record) (bool, error) {
	return p.Config.With(r.Settings).Bool(recordKey, true)
}

// CheckShared returns an error if the backend of an airlock cannot share the programs of this machine that the airlock must have.
func (p Prisons) CheckShared(r airlock.Record) error {
	if p.Traits(r).Images && (r.Rootfs != "" || len(r.Tools) > 0) {
		return docker.NoHostPrograms()
	}
	return nil
}

// Watched is how the programs in a prison are watched.
type Watched struct {
	record bool
	deny   []string
}

// Watched reads the settings and the policies for the programs in an airlock's prison.
func (p Prisons) Watched(ctx context.Context, r airlock.Record) (w Watched, err error) {
	if w.record, err = p.Records(r); err != nil {
		return w, err
	}
	if w.deny, err = p.deniedPrograms(ctx, r.Settings); err != nil {
		return w, err
	}
	if len(w.deny) > 0 && !w.record {
		return w, &prison.Unavailable{Backend: p.Backend(r).Name(), Reason: "rules for programs (" + denyKey + ", or a policy's) need their record, which " + recordKey + " turns off",
			Mend: []string{p.recordHint(ctx)}}
	}
	return w, nil
}

// recordHint returns the command that turns the record on, wherever the setting is that turns it off. A later scope overrides that of a file of
// the user's, except for a setting of one command, which only its caller can leave out.
func (p Prisons) recordHint(ctx context.Context) string {
	settings, _ := p.Repo.Settings(ctx) // without them, the hint is that for most scopes
	scope := ""
	for _, s := range settings {
		if strings.EqualFold(s.Key, recordKey) {
			scope = s.Scope
		}
	}
	switch scope {
	case "command":
		return "git config --show-origin --get-all " + recordKey
	case "worktree":
		return "git config --worktree --replace-all " + recordKey + " true"
	}
	return "git config --replace-all " + recordKey + " true"
}

// deniedPrograms returns the rules of the settings, of those that an airlock keeps, and of the policies. No setting removes a rule.
func (p Prisons) deniedPrograms(ctx context.Context, kept map[string]string) (rules []string, err error) {
	config := p.Config.With(kept)
	if config.Has(denyKey) {
		settings, err := p.Repo.Settings(ctx)
		if err != nil {
			return nil, err
		}
		for _, s := range airlock.WithKept(settings, kept) {
			if !strings.EqualFold(s.Key, denyKey) {
				continue
			}
			if _, err := execs.ParseRules([]string{s.Value}); err != nil {
				return nil, &gitops.SettingError{Key: denyKey, Value: s.Value, Want: "a pattern, or sha256: and 64 hex digits"}
			}
			rules = append(rules, s.Value)
		}
	}
	slices.Sort(rules)
	rules = slices.Compact(rules)
	policies, err := teams.ReadPolicy(ctx, p.Repo, config)
	return append(rules, policies.DeniedPrograms()...), err
}
