package proof

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/promote/exchange"
	"github.com/git-airlock/git-airlock/promote/review"
	"github.com/git-airlock/git-airlock/promote/teams"
	"github.com/git-airlock/git-airlock/words"
)

func fetchCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "fetch", Usage: "get evidence, verdicts and records of a remote",
		UsageText: "git airlock fetch [REMOTE]",
		Description: "Fetches the notes that \"git airlock share\" pushes from a remote (origin), and merges them into those here. Then it fetches\n" +
			"records of runs, as \"git airlock runs fetch\" does. It prints the git commands. It fetches no tags, and removes nothing.\n\n" +
			"Notes of JSON lines (evidence, checks, verdicts) then have the lines of both sides. Of other notes that differ, yours stay. Unlike\n" +
			"\"git notes merge\", a merge also keeps notes that the remote has removed or changed. A note that is too large is left out, and so\n" +
			"is one that says what a commit reached of which your notes say that it reached nothing. So is a ref that is not one of notes.\n\n" +
			"Whoever can push to the remote can write any line. A fetched verdict does not count by itself: the team's policy names the people\n" +
			"whose verdicts count, in addition to yours (git-airlock-policy(1)). A name in a line is a claim (git-airlock-colleagues(7)). If\n" +
			"there are verdicts under your own address that are not here, no verdict is merged, unless the policy names you. A fetched\n" +
			"result of a check opens no gate of an airlock and is not in its evidence: only results that were found here are.",
		Action: cmdline.InRepository(func(c *cli.Context, s *session.Session) error {
			remote, err := cmdline.RemoteOf(c, cmdline.Words(c))
			if err == nil {
				err = fetchNotes(c, s, remote)
			}
			if err != nil {
				return err
			}
			return cmdline.FetchRuns(c, s, remote)
		}),
	}, cmdline.Takes{Most: 1})
}

func fetchNotes(c *cli.Context, s *session.Session, remote string) error {
	next := "git ls-remote " + gitops.Pasteable(remote) + " 'refs/notes/airlock*'"
	offer, err := exchange.Offer(c.Context, s.Repo, remote)
	if err != nil {
		return cmdline.RemoteError(err, next)
	}
	if len(offer.Refs) == 0 {
		s.Report.Say("the remote has no new notes")
		return nil
	}
	s.Report.Say("%s", fetchLine(remote, offer))
	if s.Dry {
		for _, ref := range offer.Refs {
			s.Report.Say("%s", mergeLine(ref, offer))
		}
		return nil
	}
	who := exchange.User{}
	user, nobody := identity.ResolveUser(s.Config)
	if nobody == nil {
		who = exchange.User{Name: user.String(), Mail: user.Mail}
	}
	if named, err := teams.Reviewers(c.Context, s.Repo); err != nil {
		return err
	} else if slices.ContainsFunc(named, func(address string) bool { return strings.EqualFold(address, who.Mail) }) {
		who.Mail = ""
	}
	merged, err := exchange.Fetch(c.Context, s.Repo, remote, who, offer.Refs)
	if errors.Is(err, exchange.ErrNobody) {
		return fmt.Errorf("merge notes: %w", nobody)
	}
	if err != nil {
		return cmdline.RemoteError(err, next)
	}
	for _, m := range merged {
		sayMerge(s, m, offer)
	}
	for _, m := range merged {
		reportMerged(s, gitops.Pasteable(remote), m)
	}
	return nil
}

func fetchLine(remote string, offer exchange.Offered) string {
	fetch := "git -c " + exchange.Checked + " fetch --no-prune --no-tags " + gitops.Pasteable(remote)
	for _, ref := range offer.Refs {
		fetch += " " + exchange.Spec(ref)
	}
	return fetch
}

// mergeLine returns the command that merges the fetched notes of a ref.
func mergeLine(ref string, offer exchange.Offered) string {
	if slices.Contains(offer.New, ref) {
		return fmt.Sprintf("git update-ref %s %s", ref, exchange.Fetched(ref))
	}
	strategy := "ours"
	if exchange.OfLines(ref) {
		strategy = "cat_sort_uniq"
	}
	return fmt.Sprintf("git notes --ref=%s merge -s %s %s", strings.TrimPrefix(ref, "refs/notes/"), strategy, exchange.Fetched(ref))
}

// sayMerge prints the commands of a merge that was made. A ref can have been left out.
func sayMerge(s *session.Session, m exchange.Merged, offer exchange.Offered) {
	if !m.Moved {
		return
	}
	s.Report.Say("%s", mergeLine(m.Ref, offer))
	for i, l := range m.Left {
		if !l.Known && i < leftNamed {
			s.Report.Say("git notes --ref=%s remove --ignore-missing %s", strings.TrimPrefix(m.Ref, "refs/notes/"), l.On)
		}
	}
}

// leftNamed bounds the number of notes of a ref that are named as left out.
const leftNamed = 5

// reportLeft prints which notes of a ref were left out, and how to look at them.
func reportLeft(s *session.Session, remote string, m exchange.Merged) {
	for i, l := range m.Left {
		if i == leftNamed {
			s.Report.Say("%s: left out %s more of the remote", m.Ref, words.Count(len(m.Left)-i, "note"))
			return
		}
		s.Report.Say("%s: left out the note of the remote on %s: %v", m.Ref, l.On, l.Why)
		s.Report.Hint("git fetch " + remote + " " + m.Ref + " && git show FETCH_HEAD:" + gitops.Pasteable(l.Path) + "  # shows it")
	}
}

// reportMerged prints what a merge has added, kept or left out.
func reportMerged(s *session.Session, remote string, m exchange.Merged) {
	if m.Fault != nil {
		s.Report.Say("%s: left out, because that of the remote does not have the form of notes: %v", m.Ref, m.Fault)
		s.Report.Hint("git ls-remote " + remote + " " + m.Ref + "  # names its object")
		return
	}
	if m.OwnVerdicts > 0 {
		s.Report.Say("%s: left out, because it has verdicts under your own address that are not here, on %s: anybody who can push there can write them",
			m.Ref, words.Count(m.OwnVerdicts, "commit"))
		s.Report.Hint("git fetch " + remote + " " + m.Ref + " && git notes --ref=" + strings.TrimPrefix(m.Ref, "refs/notes/") + " merge -s cat_sort_uniq FETCH_HEAD  # if they are yours")
		return
	}
	reportLeft(s, remote, m)
	s.Report.Say("%s: %s, %s with new lines", m.Ref, words.Count(m.Added, "new note"), words.Count(m.Changed, "note"))
	if m.Kept > 0 {
		s.Report.Say("%s: kept %s of which the remote has another text", m.Ref, words.Count(m.Kept, "note"))
	}
	if m.Ref == review.NotesRef && m.Added+m.Changed > 0 {
		s.Report.Say("a fetched verdict does not count by itself: the team's policy names the people whose verdicts do, besides yours (see: git airlock help policy)")
	}
}
