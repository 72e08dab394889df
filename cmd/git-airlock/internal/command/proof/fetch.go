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
			"\"git notes merge\", a merge also keeps notes that the remote has removed or changed. Notes that are too large or of another form\n" +
			"are an error, and no ref moves then.\n\n" +
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

// fetchNotes gets the notes of a remote.
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
	for _, line := range notesLines(remote, offer) {
		s.Report.Say("%s", line)
	}
	if s.Dry {
		return nil
	}
	who := exchange.User{}
	user, nobody := identity.ResolveUser(s.Config)
	if nobody == nil {
		who = exchange.User{Name: user.String(), Own: user.Mail}
	}
	if named, err := teams.Reviewers(c.Context, s.Repo); err != nil {
		return err
	} else if slices.ContainsFunc(named, func(address string) bool { return strings.EqualFold(address, who.Own) }) {
		who.Own = ""
	}
	merged, err := exchange.Fetch(c.Context, s.Repo, remote, who, offer.Refs)
	if errors.Is(err, exchange.ErrNobody) {
		return fmt.Errorf("merge notes: %w", nobody)
	}
	if err != nil {
		return cmdline.RemoteError(err, next)
	}
	for _, m := range merged {
		reportMerged(s, gitops.Pasteable(remote), m)
	}
	return nil
}

// notesLines returns the commands that fetch and merge notes.
func notesLines(remote string, offer exchange.Offered) []string {
	fetch := "git -c " + exchange.Checked + " fetch --no-prune --no-tags " + gitops.Pasteable(remote)
	var merges []string
	for _, ref := range offer.Refs {
		fetch += " " + exchange.Spec(ref)
		strategy := "ours"
		if exchange.OfLines(ref) {
			strategy = "cat_sort_uniq"
		}
		line := fmt.Sprintf("git notes --ref=%s merge -s %s %s", strings.TrimPrefix(ref, "refs/notes/"), strategy, exchange.Fetched(ref))
		if slices.Contains(offer.New, ref) {
			line = fmt.Sprintf("git update-ref %s %s", ref, exchange.Fetched(ref))
		}
		merges = append(merges, line)
	}
	return append([]string{fetch}, merges...)
}

// reportMerged prints what a merge has added, kept or left out.
func reportMerged(s *session.Session, remote string, m exchange.Merged) {
	if m.Own > 0 {
		s.Report.Say("%s: left out, because it has verdicts under your own address that are not here, on %s: anybody who can push there can write them",
			m.Ref, words.Count(m.Own, "commit"))
		s.Report.Hint("git fetch " + remote + " " + m.Ref + " && git notes --ref=" + strings.TrimPrefix(m.Ref, "refs/notes/") + " merge -s cat_sort_uniq FETCH_HEAD  # if they are yours")
		return
	}
	s.Report.Say("%s: %s, %s with new lines", m.Ref, words.Count(m.Added, "new note"), words.Count(m.Changed, "note"))
	if m.Kept > 0 {
		s.Report.Say("%s: kept %s of which the remote has another text", m.Ref, words.Count(m.Kept, "note"))
	}
	if m.Ref == review.NotesRef && m.Added+m.Changed > 0 {
		s.Report.Say("a fetched verdict does not count by itself: the team's policy names the people whose verdicts do, besides yours (see: git airlock help policy)")
	}
}
