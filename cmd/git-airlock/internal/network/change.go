package network

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/ticks"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/egress"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/credential/secret"
	"github.com/git-airlock/git-airlock/prison/egress/sets"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// Begin writes the rules of a prison that is about to start into its folder. It keeps the rules that were added while the airlock ran,
// and a lockdown. It gives a placeholder to each credential with a secret. It returns the rules that it has written. The caller
// holds the lock of starts.
func Begin(dir string, rules control.Rules, secrets []secret.Secret, now time.Time) (control.Rules, error) {
	before, err := control.ReadRules(dir)
	if err != nil {
		return rules, err
	}
	kept := func(of []control.Rule) []control.Rule {
		return slices.DeleteFunc(slices.Clone(of), func(r control.Rule) bool { return r.Source != live || r.Ended(now) })
	}
	rules.Allow = append(rules.Allow, kept(before.Allow)...)
	rules.Deny = append(rules.Deny, kept(before.Deny)...)
	rules.Generation, rules.Lockdown = before.Generation+1, before.Lockdown
	rules.Credentials = place(rules.Credentials, before.Credentials, secrets)
	return rules, control.WriteRules(dir, rules)
}

// With adds a rule that allows or denies what a text describes from now until a moment; the zero time means for ever. It removes rules that
// have ended, and rules with the same text that were added to the running airlock before, except those that outlast the new rule: they
// decide again when it has ended. A denial that outlasts a permission wins. added are the new rules: a set has several.
func With(rules control.Rules, text string, deny bool, now, until time.Time) (changed control.Rules, added []control.Rule, err error) {
	members, err := sets.Expand(text)
	if err != nil {
		return rules, nil, wrongRule(deny, err)
	}
	for _, m := range members {
		r := control.Rule{Text: m.String(), Source: live, Until: until}
		if !deny && !until.IsZero() {
			r.Since = now
		}
		added = append(added, r)
	}
	without := func(of []control.Rule) []control.Rule {
		return slices.DeleteFunc(slices.Clone(of), func(r control.Rule) bool {
			return r.Ended(now) || r.Source == live && !Outlasts(r, control.Rule{Until: until}) && slices.ContainsFunc(added, func(a control.Rule) bool { return same(a.Text, r.Text) })
		})
	}
	rules.Allow, rules.Deny = without(rules.Allow), without(rules.Deny)
	if deny {
		rules.Deny = append(rules.Deny, added...)
	} else {
		rules.Allow = append(rules.Allow, added...)
	}
	return rules, added, nil
}

// wrongRule reports that the rule of a command cannot be read.
func wrongRule(deny bool, err error) error {
	command := "net allow"
	if deny {
		command = "net deny"
	}
	return &RuleError{Source: command, Err: err, Next: []string{"git airlock " + command + " -h"}}
}

// Saved reports whether the repository's own settings have a rule already, and returns a rule of all settings that denies what the rule
// allows: it would win at the next start.
func Saved(ctx context.Context, repo *gitops.Repository, key, text string, now time.Time) (have bool, denial *control.Rule, err error) {
	members, err := sets.Expand(text)
	if err != nil {
		return false, nil, wrongRule(key == DenyKey, err)
	}
	settings, err := repo.Settings(ctx)
	if err != nil {
		return false, nil, err
	}
	for _, s := range airlock.InForce(settings, key) {
		have = have || s.Scope == "local" && same(s.Value, text)
	}
	var rules control.Rules
	if rules.Deny, err = ofSettings(repo, settings, DenyKey); err != nil || key == DenyKey {
		return have, nil, err
	}
	for _, m := range members {
		if denial = DeniedBy(rules, control.Rule{Text: m.String()}, now); denial != nil {
			break
		}
	}
	return have, denial, nil
}

// same reports whether two rules have the same text, apart from the form of the host's name.
func same(a, b string) bool { return canonical(a) == canonical(b) }

// canonical returns the text of a rule with the host's name in the one form that look-ups use. It is for comparing only: methods are
// taken for a name.
func canonical(text string) string {
	fields := strings.Fields(text)
	for i, f := range fields {
		host, rest := f, ""
		if end := strings.IndexAny(f, ":/"); end >= 0 {
			host, rest = f[:end], f[end:]
		}
		labels := strings.TrimLeft(host, "*.")
		if name, err := egress.Canonical(labels); err == nil {
			fields[i] = strings.TrimSuffix(host, labels) + name + rest
		}
	}
	return strings.Join(fields, " ")
}

// Write writes changed rules as the next generation. The caller holds the lock of starts since it has read them.
func Write(dir string, rules control.Rules) (control.Rules, error) {
	rules.Generation++
	return rules, control.WriteRules(dir, rules)
}

const (
	// patience is how long a running network may need for new rules, also on a busy machine, and poll is how often this process reads
	// the network's state.
	patience = 20 * time.Second
	poll     = 20 * time.Millisecond
)

// seesRequests reports whether the rules of a prison have a credential, or a rule that holds and is about requests. For these the network
// answers in the place of servers, unless it is open.
func seesRequests(spec prison.Spec, rules control.Rules, now time.Time) bool {
	aboutRequests := func(r control.Rule) bool {
		parsed, err := egress.ParseRule(r.Text)
		return err == nil && !r.Ended(now) && parsed.Requests()
	}
	return spec.Network == prison.NetworkAllowlist &&
		(len(rules.Credentials) > 0 || slices.ContainsFunc(slices.Concat(rules.Allow, rules.Deny), aboutRequests))
}

// Certificates returns the certificates (PEM) that programs in a prison that has just started must trust, in addition to those of their
// system: those that this machine has, and those of the network, for which it waits.
func Certificates(ctx context.Context, spec prison.Spec, now time.Time) (string, error) {
	if spec.Network == prison.NetworkNone {
		return "", nil
	}
	rules, err := control.ReadRules(spec.Dir)
	if err != nil || !seesRequests(spec, rules, now) {
		return rules.Added, err
	}
	var state control.State
	err = await(ctx, func() (bool, error) {
		var err error
		state, err = control.ReadState(spec.Dir)
		return err == nil && state.Authorities != "", err
	})
	if err != nil {
		return "", fmt.Errorf("the network has not made its certificates: %w", err)
	}
	return rules.Added + state.Authorities, nil
}

// Await waits until the network of a running prison has taken rules, and returns its state.
func Await(ctx context.Context, dir string, generation uint64) (state control.State, err error) {
	var failed string
	err = await(ctx, func() (bool, error) {
		var err error
		state, err = control.ReadState(dir)
		if failed = state.Error; state.Generation >= generation {
			failed = ""
		}
		return err == nil && (state.Generation >= generation || failed != ""), err
	})
	switch {
	case err != nil:
		return state, fmt.Errorf("the network has not taken the new rules: %w", err)
	case failed != "":
		return state, fmt.Errorf("the network keeps its earlier rules: %s", failed)
	}
	return state, nil
}

// await waits until a condition holds, but not longer than patience. Its error then contains the last error of the condition.
func await(ctx context.Context, holds func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error
	for range ticks.NowAndEach(ctx.Done(), poll) {
		ok, err := holds()
		if ok {
			return nil
		}
		last = err
	}
	if last != nil {
		return fmt.Errorf("within %v: %w", patience, last)
	}
	return fmt.Errorf("within %v", patience)
}
