// Package network has the rules of a prison's network as the user sees them: their sources, their changes while the prison runs,
// their decision about a host, and the records of the ledger about them. It prints nothing.
//
// Rules come from the user's git configuration, from options, and from policies, which can only deny. [Compile] turns them into
// one set once, at a start. Commands change this set later, and the process that holds the prison takes it from there
// (package control).
package network

import (
	"fmt"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/egress"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/sets"
)

// The settings of the network.
const (
	AllowKey    = "airlock.allow" // can be set more than once
	DenyKey     = "airlock.deny"  // can be set more than once
	learnKey    = "airlock.networkLearn"
	UpstreamKey = "airlock.upstreamProxy"
)

// Rules are the rules of a network, with its mode.
type Rules struct {
	control.Rules
	Open bool // every public host is reached that no rule denies
}

// live is the source of rules that were added to a running airlock.
const live = "git airlock net"

// RuleError reports that a rule cannot be used.
type RuleError struct {
	Source string // a setting with its file, or an option
	Err    error  // has the rule
	Next   []string
}

func (e *RuleError) Error() string { return gitops.Text(e.Source + ": " + e.Err.Error()).String() }

func (e *RuleError) Unwrap() error { return e.Err }

// Warnings returns what a user may not expect of rules that allow something.
func Warnings(rules []control.Rule) (all []string) {
	for _, r := range rules {
		if err := Void(r); err != nil {
			all = append(all, fmt.Sprintf("rule %q allows nothing: %v", r.Text, err))
		}
		parsed, err := egress.ParseRule(r.Text)
		if err == nil && parsed.Shared() != "" {
			all = append(all, fmt.Sprintf("rule %q covers the names of many tenants of %s: anyone can get one there", r.Text, parsed.Shared()))
		}
		if err == nil && parsed.Hides() {
			all = append(all, fmt.Sprintf("rule %q lets TLS hide the name of its server: other servers at the same addresses are reached, and no record names them", r.Text))
		}
	}
	return all
}

// Sets returns the names of the sets of rules that ship with the program.
func Sets() []string { return sets.Names() }
