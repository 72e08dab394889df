package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/policy"
)

// decide writes down what the user wants done with commits that a rule holds.
func (a *app) decide(ctx context.Context, r airlock.Record, accept, drop []string) error {
	var wanted []policy.Acceptance
	for _, text := range accept {
		w, err := policy.ParseAcceptance(text)
		if err != nil {
			return ui.Usagef("--accept: %s", err)
		}
		wanted = append(wanted, w)
	}
	if a.dry {
		for _, w := range wanted {
			ui.Say(a.message, "would let pass what %s holds", gitops.Escape(w.String()))
		}
		for _, name := range drop {
			ui.Say(a.message, "would leave out %s", gitops.Escape(name))
		}
		return nil
	}
	engine := a.engine(r)
	defer engine.Close()
	if len(wanted) > 0 {
		passed, err := engine.Accept(ctx, wanted)
		if err := noneSuch(err); err != nil {
			return err
		}
		a.sayDecided("accepted", passed)
	}
	if len(drop) > 0 {
		left, err := engine.Drop(ctx, drop)
		if err := noneSuch(err); err != nil {
			return err
		}
		a.sayDecided("dropped", left)
	}
	return nil
}

func (a *app) sayDecided(what string, commits []promote.Decided) {
	for _, d := range commits {
		ui.Say(a.message, "%s: %.12s %s", what, d.Commit, d.Subject)
	}
}

// noneSuch says where to look for what can be decided.
func noneSuch(err error) error {
	if errors.Is(err, promote.ErrNotHeld) || errors.Is(err, history.ErrNotPending) {
		return &hinted{err, []string{"git airlock policy", "git airlock status"}}
	}
	return err
}

// ruleState is a rule as it is set here, and what it holds.
type ruleState struct {
	ID      string        `json:"id"`
	Action  policy.Action `json:"setting"`
	Default policy.Action `json:"default"`
	Source  policy.Source `json:"source"` // "default", "config" or "team"
	Key     string        `json:"key"`
	Doc     string        `json:"description"`
	Holds   []gitops.OID  `json:"holds"` // pending commits
	Flags   []gitops.OID  `json:"flags"` // landed commits
}

// ruleStates joins the rules with what they found.
func ruleStates(s policy.Settings, j promote.Judged) []ruleState {
	var states []ruleState
	for _, d := range s.Rules() {
		state := ruleState{ID: d.ID, Action: s.Action(d.ID), Default: d.Default, Source: s.Source(d.ID), Key: d.Key, Doc: d.Doc,
			Holds: []gitops.OID{}, Flags: []gitops.OID{}}
		if state.Source == "" {
			state.Source = "default"
		}
		for _, v := range j.Held {
			for _, f := range v.Findings {
				if f.Rule == d.ID && f.Action == policy.Hold {
					state.Holds = append(state.Holds, v.Commit)
				}
			}
		}
		for _, f := range j.Flagged {
			for _, rule := range f.Rules {
				if rule == d.ID {
					state.Flags = append(state.Flags, f.Commit)
				}
			}
		}
		states = append(states, state)
	}
	return states
}

// setting words what a rule does.
func (r ruleState) setting() string {
	switch {
	case r.Key == "":
		return "refuse"
	case r.Source == "default":
		return r.Action.String()
	}
	return fmt.Sprintf("%s (%s)", r.Action, r.Source)
}
