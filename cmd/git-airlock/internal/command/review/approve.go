package review

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/inbound"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
	"github.com/git-airlock/git-airlock/promote/verdict"
	"github.com/git-airlock/git-airlock/words"
)

func approveCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "approve", Usage: "let pending commits land",
		UsageText: "git airlock approve [-m TEXT] REV... | --upto REV | --all",
		Description: "REV is a number of git airlock review, a commit of airlock/<id>/pending, or an inner commit.\n" +
			"Records that you have reviewed the commits, and lands those that have all that they need. Takes back a rejection or an undo.\n" +
			"Exit status 3 if one of them does not land now.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "upto", Usage: "approve `REV` and its ancestors that you have not rejected"},
			&cli.BoolFlag{Name: "all", Usage: "approve all pending commits that you have not rejected or undone"},
			messageFlag(""),
		},
		Action: onCommits(func(c *cli.Context) (verdict.Request, error) {
			wanted := verdict.Request{Word: review.Approve, Reason: c.String("message"), Names: cmdline.Words(c), UpTo: c.String("upto"), All: c.Bool("all")}
			if len(wanted.Names) == 0 && wanted.UpTo == "" && !wanted.All {
				return wanted, ui.Usagef("approve: name a commit, or use --upto REV or --all")
			}
			if wanted.All && (len(wanted.Names) > 0 || wanted.UpTo != "") {
				return wanted, ui.Usagef("approve: --all and other commits exclude each other")
			}
			return wanted, nil
		}),
	}, cmdline.Takes{Most: mostCommits})
}

func messageFlag(why string) *cli.StringFlag {
	return &cli.StringFlag{Name: "message", Aliases: []string{"m"}, Usage: "record the `TEXT` with the verdict" + why}
}

// said maps verdicts to words for messages.
var said = map[review.Word]string{review.Approve: "approved", review.Reject: "rejected", review.Fix: "waits for a fix"}

// sayDecided prints that a commit got a verdict, or would get it without --dry-run.
func sayDecided(s *session.Session, word review.Word, id gitops.OID, subject string) {
	would := ""
	if s.Dry {
		would = "would record: "
	}
	s.Report.Say("%s%s: %.12s %s", would, said[word], id, subject)
}

// sayAll prints which commits got a verdict. Only all pending commits can be none. landed is the number of landed commits that
// get it, too.
func sayAll(s *session.Session, word review.Word, decided []verdict.Decided, landed int) {
	for _, d := range decided {
		if d.Kept {
			continue // the refusal names it
		}
		subject := d.Subject
		if d.Unlisted {
			subject += " (no review has listed it)"
		}
		sayDecided(s, word, d.Commit, subject)
	}
	if len(decided)+landed == 0 {
		s.Report.Say("no pending commit waits for an approval")
		s.Report.Hint("git airlock review  # a rejected or undone commit is approved by its number")
	}
}

// decide records a verdict, and makes a promotion cycle with it. landed is the number of landed commits that get it, too.
func decide(ctx context.Context, s *session.Session, r airlock.Record, wanted verdict.Request, landed int) error {
	if err := inbound.CheckReason(s.Prisons(), string(wanted.Word), wanted.Reason); err != nil {
		return err
	}
	if err := s.Heal(r); err != nil {
		return err
	}
	engine := s.Engine(r)
	engine.Settings = s.Settings
	defer engine.Close()
	before, err := ledger.TotalLanded(engine.Dir())
	if err != nil {
		return err
	}
	wanted.Cycle = true
	decided, err := verdict.Record(ctx, engine, wanted)
	if errors.Is(err, history.ErrNotPending) || errors.Is(err, history.ErrAmbiguous) {
		return adviseOn(err, wanted)
	}
	if errors.Is(err, review.ErrReason) {
		return ui.Usagef("--message: %s", err)
	}
	if err != nil {
		return err
	}
	sayAll(s, wanted.Word, decided, landed)
	if s.Dry {
		return wouldWait(ctx, engine, decided)
	}
	outcome, err := engine.Drain(ctx, promote.Options{Known: true}) // the daemon exports new commits
	if err != nil {
		return err
	}
	if n := outcome.Total - before; n > 0 {
		s.Report.Say("landed %s on %s", words.Count(n, "commit"), engine.Record.BranchName())
	}
	s.HintAtNotes(r.ID, outcome.Total)
	if wanted.Word == review.Approve { // listing what is left takes merges
		if all, err := verdict.AllLanded(ctx, engine, decided); err != nil || all {
			return err
		}
	}
	list, err := verdict.List(ctx, engine)
	if err != nil {
		return err
	}
	if wanted.Word == review.Approve {
		return waiting(outcome, decided, list, r.Phase == airlock.Running)
	}
	for _, x := range list {
		if x.State == review.StateBlocked {
			s.Report.Say("blocked: %s %s", reviewedOf(x).short(), x.Subject)
		}
	}
	return nil
}

// adviseOn adds to an error about the name of a commit the commands that help. wanted is the request for a verdict, or empty.
func adviseOn(err error, wanted verdict.Request) error {
	if landed, ok := errors.AsType[*verdict.LandedError](err); ok {
		return environment.Advise(err, fmt.Sprintf("git show %.12s", landed.As))
	}
	gone, replaced := errors.AsType[*verdict.ReplacedError](err)
	if !replaced {
		return environment.Advise(err, "git airlock review")
	}
	next := []string{"git airlock diff " + gone.By}
	switch {
	case wanted.Word == "":
	case wanted.UpTo != "":
		next = append(next, "git airlock review") // which of its ancestors are new, too
	case wanted.Reason != "":
		next = append(next, fmt.Sprintf("git airlock %s -m TEXT %s", wanted.Word, gone.By))
	default:
		next = append(next, fmt.Sprintf("git airlock %s %s", wanted.Word, gone.By))
	}
	return environment.Advise(err, next...)
}

// handlesOf returns names of commits for a command, each after a space.
func handlesOf(ids []gitops.OID, all []reviewed) string {
	words := ""
	for _, r := range all {
		if slices.Contains(ids, r.Inner) {
			words += " " + r.handle()
		}
	}
	return words
}

// contrary has, for the state of a commit of --upto that keeps its verdict, the reason why it waits, and what approve with its name does.
var contrary = map[review.State]struct{ why, what string }{
	review.StateRejected: {"it was rejected", "takes the rejection back"},
	review.StateUndone:   {"it was undone", "takes the undo back"},
	review.StateAsked:    {"the agent has not fixed it yet", "approves it without the fix"},
}

// wouldWait returns, for a dry run, the refusal for the commit of --upto that keeps its verdict to the contrary. Whether the others land is not known.
func wouldWait(ctx context.Context, engine *promote.Engine, decided []verdict.Decided) error {
	kept := slices.DeleteFunc(slices.Clone(decided), func(d verdict.Decided) bool { return !d.Kept })
	if len(kept) == 0 {
		return nil
	}
	list, err := verdict.List(ctx, engine)
	if err != nil {
		return err
	}
	return waiting(ledger.Outcome{}, kept, list, false)
}

// waiting returns the refusal for the approved commits that have not landed. runs reports that the prison runs.
func waiting(o ledger.Outcome, decided []verdict.Decided, list []verdict.Reviewable, runs bool) error {
	var all []reviewed
	for _, x := range list {
		all = append(all, reviewedOf(x))
	}
	var reasons, next []string
	waits := map[string][]string{} // by reason
	for _, x := range all {
		if !slices.ContainsFunc(decided, func(d verdict.Decided) bool { return d.Inner == x.Inner }) {
			continue
		}
		why, help := whyWaits(x, all, list)
		if i := slices.IndexFunc(o.Holds, func(h ledger.Hold) bool { return h.Reason != ledger.Review }); why == "" && i >= 0 {
			why = fmt.Sprintf(": held (%s): %s", o.Holds[i].Reason, o.Holds[i].Message)
			help = ledger.WithStart(o.Holds[i].Next, runs)
		}
		if why != "" {
			next = help
		}
		if len(waits[why]) == 0 {
			reasons = append(reasons, why)
		}
		waits[why] = append(waits[why], fmt.Sprintf("%s (%s)", x.short(), x.Subject))
	}
	if len(reasons) == 0 {
		return nil
	}
	var texts []string
	for _, why := range reasons {
		texts = append(texts, waitText(waits[why])+why)
	}
	return &environment.Refusal{Text: strings.Join(texts, "; "), Next: next}
}

// whyWaits returns what keeps an approved commit of a list from landing, for [waitText], and the commands to type next. It returns nothing if the
// verdict on the commit and the commits that it needs are not a reason.
func whyWaits(x reviewed, all []reviewed, list []verdict.Reviewable) (why string, next []string) {
	if back, against := contrary[x.State]; against {
		return ": " + back.why, []string{"git airlock approve " + x.handle() + "  # " + back.what}
	}
	if names := namesOf(x.Needs, all); len(names) > 0 {
		reason, approve := " for "+strings.Join(names, ", "), "git airlock approve"+handlesOf(x.Needs, all)
		if slices.ContainsFunc(list, func(n verdict.Reviewable) bool {
			return slices.Contains(x.Needs, n.Inner) && n.State == review.StateRejected
		}) {
			return reason, []string{"git airlock reject -m TEXT " + x.handle() + "  # as what it needs", approve + "  # takes the rejection back"}
		}
		return reason, []string{"git airlock review", approve}
	}
	if merge := unapproved(x.Inner, list); len(merge) > 0 {
		return " for the merge that brings it, " + strings.Join(namesOf(merge, all), ", "), []string{"git airlock review", "git airlock approve" + handlesOf(merge, all)}
	}
	return "", nil
}

// unapproved returns the merge with which a commit lands, as a list, unless it is approved.
func unapproved(inner gitops.OID, list []verdict.Reviewable) (merge []gitops.OID) {
	for _, x := range list {
		if x.Inner == inner && slices.ContainsFunc(list, func(m verdict.Reviewable) bool { return m.Inner == x.With && m.State != review.StateApproved }) {
			merge = append(merge, x.With)
		}
	}
	return merge
}

// waitingNamed bounds the commits that are named with one reason.
const waitingNamed = 5

// waitText returns the beginning of a message about commits that wait. The caller adds the reason.
func waitText(names []string) string {
	switch more := len(names) - waitingNamed; {
	case len(names) == 1:
		return names[0] + " waits"
	case more > 0:
		return fmt.Sprintf("%s and %s wait", strings.Join(names[:waitingNamed], ", "), words.Count(more, "other commit"))
	default:
		return strings.Join(names, ", ") + " wait"
	}
}
