package records

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/promote/record/replay"
	"github.com/git-airlock/git-airlock/promote/record/store"
	"github.com/git-airlock/git-airlock/words"
)

func replayCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "replay", Usage: "make the commits of a run again from its record",
		UsageText: "git airlock replay RUN [--onto REVISION] [--to BRANCH] [--json]",
		Description: "Verifies the record, makes the landed commits again, and compares their trees with the hashes in the record. It never runs\n" +
			"the agent, and changes nothing unless --to names a branch. Commits that this repository has are copied through a\n" +
			"quarantine. Those that it does not have are made from the record's changes.patch. It works in every repository that has\n" +
			"the record and the commit before the run.\n\n" +
			"With --onto, the commits are made on another commit, each by a three-way merge. With --to, a branch names the last one:\n" +
			"a new branch, or one that is not checked out and moves forward.\n\n" +
			"The exit status is 0 if all trees are the same, or merge without a conflict with --onto; 1 if a hash differs from the\n" +
			"record; and 3 in a conflict, or if a commit or a branch is in the way.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "onto", Usage: "make the commits on this `REVISION`"},
			&cli.StringFlag{Name: "to", Usage: "let this `BRANCH` name the last commit"},
			cmdline.JSONFlag,
		},
		Action: inAny(replayRun),
	}, cmdline.Takes{Least: 1, Most: 1})
}

func replayRun(c *cli.Context, s *session.Session) error {
	e, all, err := find(c.Context, s, cmdline.Words(c)[0])
	if err != nil {
		return err
	}
	if faults := store.Verify(c.Context, s.Repo, e, all); len(faults) > 0 {
		return environment.Advise(fmt.Errorf("the record of the run is not whole: %s", gitops.Text(faults[0])), "git airlock inspect "+e.Name()+" --verify")
	}
	r := replay.Request{Repo: s.Repo}
	if r.Run, err = store.Load(c.Context, s.Repo, e); err != nil {
		return err
	}
	if onto := c.String("onto"); c.IsSet("onto") {
		if r.Onto, err = s.Repo.Commit(c.Context, onto); err != nil {
			return environment.Advise(err, "git log --all")
		}
	}
	if who, err := identity.ResolveUser(s.Config); err == nil {
		r.Committer = who.String()
	}
	unlock, err := s.Store.Lock(c.Context) // a workshop belongs to one process
	if err != nil {
		return err
	}
	defer unlock()
	if c.IsSet("to") && c.String("to") == "" {
		return ui.Usagef("replay: --to needs the name of a branch")
	}
	result, err := replay.Run(c.Context, r, c.String("to"))
	if err != nil {
		again := "git airlock replay " + e.Name()
		if c.IsSet("onto") {
			again += " --onto " + gitops.Pasteable(c.String("onto"))
		}
		return refusedReplay(err, again)
	}
	if s.Dry {
		return foretellReplay(c, s, r)
	}
	return showReplay(c, s, e.Name(), result)
}

// refusedReplay adds the exit status and the next commands to an error. again is the command without its branch.
func refusedReplay(err error, again string) error {
	lacking, taken, name := new(replay.Lacking), new(replay.Taken), new(replay.BadName)
	switch {
	case errors.Is(err, replay.ErrNoCommitter):
		return environment.Advise(err, "git config user.name YOUR-NAME", "git config user.email YOUR-ADDRESS")
	case errors.As(err, &lacking) && lacking.Cause != nil:
		return &environment.Refusal{Text: lacking.Error(), Next: []string{again + "  # tries again"}}
	case errors.As(err, &lacking):
		return &environment.Refusal{Text: lacking.Error(), Next: []string{"git fetch --all", "git fetch REMOTE " + string(lacking.Commit)}}
	case errors.As(err, &taken):
		return &environment.Refusal{Text: taken.Error(), Next: []string{again + " --to ANOTHER-BRANCH"}}
	case errors.As(err, &name):
		return ui.Usagef("replay: %s", name)
	}
	return err
}

func foretellReplay(c *cli.Context, s *session.Session, r replay.Request) error {
	landed, _, err := replay.Landed(r.Run)
	if err != nil {
		return err
	}
	text := "would make " + words.Count(len(landed), "commit") + " again"
	if r.Onto != "" {
		text += fmt.Sprintf(" on %.12s", r.Onto)
	}
	if to := c.String("to"); to != "" && len(landed) > 0 {
		text += ", and let the branch " + gitops.Text(to).String() + " name the last one"
	}
	s.Report.Say("%s", text)
	return nil
}

// replayed is a commit in version 1 of replay --json.
type replayed struct {
	Recorded gitops.OID   `json:"recorded"` // the landed commit
	Want     gitops.OID   `json:"want"`     // its tree in the record
	Made     gitops.OID   `json:"made"`     // empty if it was not made
	Tree     gitops.OID   `json:"tree"`
	State    replay.State `json:"state"`
	Subject  gitops.Text  `json:"subject"` // escaped
	Paths    []string     `json:"paths"`   // in conflict, escaped
}

// replayDocument is version 1 of replay --json.
type replayDocument struct {
	Version int          `json:"version"`
	Run     string       `json:"run"`
	State   replay.State `json:"state"`
	Onto    gitops.OID   `json:"onto"`
	Tip     gitops.OID   `json:"tip"`    // empty if not all commits could be made
	Branch  string       `json:"branch"` // full name, empty without --to
	Left    int          `json:"left"`   // commits of the run that did not land
	Commits []replayed   `json:"commits"`
}

func showReplay(c *cli.Context, s *session.Session, run string, r replay.Result) error {
	d := replayDocument{Version: ui.DocumentVersion, Run: run, State: r.State(), Onto: r.Onto, Tip: r.Tip(), Left: r.Left}
	if to := c.String("to"); to != "" && d.Tip != "" {
		d.Branch = gitops.ToText("refs/heads/" + to)
	}
	for _, x := range r.Commits {
		d.Commits = append(d.Commits, replayed{x.Recorded, x.Want, x.Made, x.Tree, x.State, x.Subject, gitops.Escaped(x.Paths)})
	}
	if err := cmdline.Print(c, s, false, d, cmdline.Lines(d.Commits, replayedLine)); err != nil {
		return err
	}
	return d.end(s)
}

func replayedLine(p ui.Paint, x replayed) string {
	state := fmt.Sprintf("%-8s", x.State)
	if x.State == replay.Differs || x.State == replay.Conflict {
		state = p.Red(state)
	}
	return strings.TrimRight(fmt.Sprintf("%s  %s  tree %s  %s", state, abbreviated(x.Made), abbreviated(x.Tree), x.Subject), " ")
}

// end prints the result, and returns the error that stands for it.
func (d replayDocument) end(s *session.Session) error {
	if d.Left > 0 {
		s.Report.Say("%s did not land, and %s left out", words.Count(d.Left, "commit"), map[bool]string{true: "is", false: "are"}[d.Left == 1])
	}
	n := len(d.Commits)
	switch d.State {
	case replay.Differs:
		return environment.Advise(fmt.Errorf("the tree of %.12s is %.12s, and %.12s in the record", d.Commits[n-1].Recorded, d.Commits[n-1].Tree, d.Commits[n-1].Want),
			"git airlock inspect "+d.Run+" --verify")
	case replay.Conflict:
		return &environment.Refusal{Text: fmt.Sprintf("the commit %.12s conflicts with %.12s in %s", d.Commits[n-1].Recorded, d.Onto, strings.Join(d.Commits[n-1].Paths, ", ")),
			Next: []string{"git airlock replay " + d.Run + "  # on the commit before the run"}}
	}
	switch {
	case n == 0:
		s.Report.Say("no commit of this run landed")
	case d.State == replay.Same:
		s.Report.Say("%s made again: all trees are the same as in the record", words.Count(n, "commit"))
	default:
		s.Report.Say("%s made again on %.12s", words.Count(n, "commit"), d.Onto)
	}
	if d.Branch != "" {
		s.Report.Say("%s is at %.12s", gitops.Text(gitops.FromText(strings.TrimPrefix(d.Branch, "refs/heads/"))), d.Tip)
	}
	return nil
}
