package hold

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/policy"
	"github.com/git-airlock/git-airlock/promote/review"
	"github.com/git-airlock/git-airlock/promote/teams"
	"github.com/git-airlock/git-airlock/words"
)

// Policy returns the hold of a commit that a rule holds. later is the number of commits after it that rules hold
// as well.
func Policy(v ledger.GateResult, later int) ledger.Hold {
	h := ledger.Hold{Reason: ledger.Policy, Message: fmt.Sprintf("commit %.12s (%s)", v.Commit, words.Shorten(v.Subject, briefly))}
	var accepted []policy.Acceptance
	for _, f := range v.Findings {
		if f.Action != policy.Hold {
			continue
		}
		h.Message += fmt.Sprintf("; %s: %s", f.Rule, f.Detail)
		h.Paths = append(h.Paths, f.Paths...)
		accepted = append(accepted, acceptances(f)...)
	}
	if later > 0 {
		ones := "ones are"
		if later == 1 {
			ones = "one is"
		}
		h.Message += fmt.Sprintf("; %d later %s held, too: git airlock policy", later, ones)
	}
	h.Next = []string{fmt.Sprintf("git show %.12s", v.Commit), Accept(accepted, v.Commit), drop(v.Commit)}
	return h
}

// Accept returns the command that lets commits pass rules. It names the commits, so that it accepts none that the agent has put in the place
// of one that the user has looked at.
func Accept(rules []policy.Acceptance, commits ...gitops.OID) string {
	command := "git airlock promote"
	for _, a := range rules {
		command += " --accept " + words.ShellQuote(a.String())
	}
	for _, id := range commits {
		command += fmt.Sprintf(" %.12s", id)
	}
	return command
}

// drop returns the command that leaves a commit out.
func drop(id gitops.OID) string { return fmt.Sprintf("git airlock promote --drop %.12s", id) }

// acceptancesNamed bounds the number of paths in a command. With more paths, the command names only the rule.
const acceptancesNamed = 10

// acceptances returns the narrowest acceptances of a finding that can be typed.
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

// TeamUnreadable returns a hold of all commits. Otherwise the user would believe that the team's policy is enforced.
func TeamUnreadable(cause error) ledger.Hold {
	h := ledger.Hold{Reason: ledger.Policy, Message: "the team's policy cannot be read: " + gitops.Text(cause.Error()).String()}
	if broken, ok := errors.AsType[*teams.PolicyError](cause); ok {
		h.Next = broken.Next
	}
	return h
}

// undoneNamed bounds the number of commits in a command that takes an undo back.
const undoneNamed = 5

// notApplied returns the hold of a commit that needs a dropped commit, and of all commits that need it. refused are the verdicts on the
// commits that it may need and that the user has undone or rejected.
func notApplied(d ledger.Dropped, paths []string, refused []ledger.Reviewed) ledger.Hold {
	h := ledger.Hold{Reason: ledger.Conflict, Paths: gitops.Escaped(paths),
		Message: fmt.Sprintf("commit %.12s (%s) does not apply without the rejected, dropped or undone commits, and what needs it waits as well", d.Commit, words.Shorten(d.Subject, briefly)),
		Next:    []string{fmt.Sprintf("git airlock reject -m TEXT %.12s", d.Commit), "git airlock review", "git airlock visit"}}
	ids := map[review.Word]string{}
	count := map[review.Word]int{}
	for _, r := range refused {
		ids[r.Word] += fmt.Sprintf(" %.12s", cmp.Or(r.Commit, r.Inner))
		count[r.Word]++
	}
	if count[review.Reject] == 1 { // review shows which of several it needs
		h.Next = append([]string{"git airlock approve" + ids[review.Reject] + "  # takes the rejection back"}, h.Next...)
	}
	if n := count[review.Undone]; n > 0 && n <= undoneNamed {
		h.Next = append([]string{"git airlock approve" + ids[review.Undone] + "  # takes the undo back"}, h.Next...)
	}
	return h
}
