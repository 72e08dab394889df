package promote

import (
	"errors"
	"fmt"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy"
)

// policyHold is the hold of a commit that a rule holds, with all that builds on it. later is how many of those
// are held by rules of their own.
func (c *cycle) policyHold(v Verdict, later int) Hold {
	h := Hold{Reason: Policy, Message: fmt.Sprintf("commit %.12s (%s)", v.Commit, brief(v.Subject))}
	accept := "git airlock promote"
	for _, f := range v.Findings {
		if f.Action != policy.Hold {
			continue
		}
		h.Message += fmt.Sprintf("; %s: %s", f.Rule, f.Detail)
		h.Paths = append(h.Paths, f.Paths...)
		for _, a := range acceptances(f) {
			accept += " --accept " + gitops.ShellQuote(a.String())
		}
	}
	if later > 0 {
		h.Message += fmt.Sprintf("; %d later ones are held, too: git airlock policy", later)
	}
	commit := fmt.Sprintf("%.12s", v.Commit)
	h.Next = []string{"git show " + commit, accept, "git airlock promote --drop " + commit}
	return h
}

// acceptancesNamed bounds how many paths a command names before it names the rule alone.
const acceptancesNamed = 10

// acceptances are what lets a finding pass, as narrow as it can be typed.
func acceptances(f policy.Finding) []policy.Acceptance {
	if len(f.Paths) == 0 || len(f.Paths) > acceptancesNamed || f.More {
		return []policy.Acceptance{{Rule: f.Rule}}
	}
	var list []policy.Acceptance
	for _, p := range f.Paths {
		list = append(list, policy.Acceptance{Rule: f.Rule, Path: p})
	}
	return list
}

// briefly bounds the characters of a subject in a message.
const briefly = 60

func brief(subject string) string {
	if runes := []rune(subject); len(runes) > briefly {
		return string(runes[:briefly]) + "..."
	}
	return subject
}

// teamUnreadable holds everything: a policy that is not obeyed would be taken for one that is.
func teamUnreadable(cause error) Hold {
	h := Hold{Reason: Policy, Message: "the team's policy cannot be read: " + gitops.Escape(cause.Error())}
	var broken *PolicyError
	if errors.As(cause, &broken) {
		h.Next = broken.Next
	}
	return h
}

// notApplied is the hold of a commit that needs what was dropped, with all that builds on it.
func (c *cycle) notApplied(d Dropped, paths []string) Hold {
	return Hold{Reason: Conflict, Paths: escaped(paths),
		Message: fmt.Sprintf("commit %.12s (%s), and what builds on it, does not apply without what was dropped", d.Commit, brief(d.Subject)),
		Next:    []string{fmt.Sprintf("git airlock promote --drop %.12s", d.Commit), "git airlock visit"}}
}
