package attest

import (
	"fmt"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/words"
)

// noNetwork is the network of a prison without one, in a record.
const noNetwork = "none"

// facts are what the host state has about landed commits.
type facts struct {
	kept    map[gitops.OID]ledger.Fact
	entries map[gitops.OID]ledger.Pair
	landed  []gitops.OID // those in kept that have landed, oldest first
	network bool         // the prison has a network
	partial bool         // the snapshot left out files, so that no tree is the agent's
	// incomplete counts the commits of which the host state has only the entry of the ledger.
	incomplete int
}

// readFacts reads the facts. promoted is the last landed commit.
func (a Attester) readFacts(promoted gitops.OID) (f *facts, err error) {
	f = &facts{network: a.Record.Isolation.Network != noNetwork, partial: a.Record.Partial}
	if f.kept, err = ledger.ReadFacts(a.dir()); err != nil {
		return f, err
	}
	f.entries, f.landed, err = ledger.Entries(a.dir(), promoted)
	f.landed = slices.DeleteFunc(f.landed, func(id gitops.OID) bool { return f.kept[id].Commit == "" })
	return f, err
}

// of returns the facts about a commit. If they are gone, it returns what the ledger shows, which is less: no reviewer, and no result of the gate.
func (f *facts) of(commit gitops.OID) ledger.Fact {
	fact := f.kept[commit]
	if fact.Note != "" {
		return fact
	}
	f.incomplete++
	p := f.entries[commit]
	p.Merged = p.Merged || f.partial
	fact.Note = fmt.Sprintf("Airlock-Inner-Commit: %s\nAirlock-Tree: %s\nAirlock-Policy: unchecked\n", p.Inner, p.Tree())
	for _, w := range p.Without {
		fact.Note += fmt.Sprintf("Airlock-Without: %s\n", w)
	}
	if f.network && fact.Reached == "" {
		fact.Reached = "Airlock-Reached: unknown\n"
	}
	return fact
}

// forget removes the facts about commits of which each has its statement now.
func (a Attester) forget(f *facts, commits []string) error {
	if f.incomplete > 0 {
		a.Say("the evidence about %s names no reviewer and no result of the gate, because the host state does not have them", words.Count(f.incomplete, "commit"))
	}
	made := map[gitops.OID]bool{}
	for _, c := range commits {
		made[gitops.OID(c)] = true
	}
	return ledger.ForgetFacts(a.dir(), made)
}
