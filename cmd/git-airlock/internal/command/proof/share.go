package proof

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/exchange"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/promote/review"
)

func shareCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "share", Usage: "push evidence, verdicts and records to a remote",
		UsageText: "git airlock share [--runs] [--evidence] [--review] [REMOTE]",
		Description: "A plain git push leaves notes and records here. share pushes those that exist to the remote (origin), and prints the git command.\n" +
			"It pushes nothing else, and forces nothing except refs/airlock/<id>/pending. The options select groups. Without one all are\n" +
			"pushed, except pending commits. \"git airlock fetch\" gets them in another clone.\n\n" +
			"Pending commits are those that nobody has approved yet, also those that the policy gate holds, for a key in them perhaps. Whoever\n" +
			"can read the remote can then read them, so only --review pushes them.\n\n" +
			"If the remote has notes that are not here, git pushes none in their place: \"git airlock fetch\" merges them, and share pushes both.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "runs", Usage: "push the records of runs, as \"git airlock runs push\" does"},
			&cli.BoolFlag{Name: "evidence", Usage: "push the notes on origin, evidence, network and checks of commits"},
			&cli.BoolFlag{Name: "review", Usage: "push pending commits with their notes, and the verdicts"},
		},
		Action: cmdline.InRepository(func(c *cli.Context, s *session.Session) error {
			remote, err := cmdline.RemoteOf(c, cmdline.Words(c))
			if err != nil {
				return err
			}
			all := !c.Bool("runs") && !c.Bool("evidence") && !c.Bool("review")
			s.Attest(c.Context)
			refs, err := shared(c.Context, s.Repo, groups{runs: all || c.Bool("runs"), evidence: all || c.Bool("evidence"), verdicts: all || c.Bool("review"), pending: c.Bool("review")})
			switch {
			case err != nil:
				return err
			case len(refs) == 0:
				s.Report.Say("nothing to share: there are no such refs here")
				return nil
			}
			err = cmdline.Push(c, s, remote, refs...)
			if newer, ok := errors.AsType[*cmdline.RejectedError](err); ok && slices.ContainsFunc(newer.Refs, isNotes) {
				return environment.Advise(newer, "git airlock fetch "+gitops.Pasteable(remote)+"  # and share again")
			}
			return err
		}),
	}, cmdline.Takes{Most: 1})
}

func isNotes(ref string) bool { return slices.Contains(exchange.NoteRefs, ref) }

// groups selects what is shared.
type groups struct{ runs, evidence, verdicts, pending bool }

// shared returns what git must push: the refs of some groups that exist.
//
// The push of an airlock's pending ref is forced. The airlock builds this ref again whenever the branch moves or the agent amends a commit,
// so its new value seldom contains the one before, and nobody else moves it. The push of other refs is not forced. Notes only get new
// commits on top, and the record of a run never changes, so a value that is not contained in the one here is somebody else's work.
func shared(ctx context.Context, r *gitops.Repository, of groups) ([]string, error) {
	at, err := r.Refs(ctx, append([]string{"refs/airlock"}, exchange.NoteRefs...)...)
	if err != nil {
		return nil, err
	}
	var refs, pending []string
	for _, ref := range exchange.NoteRefs {
		// Verdicts are about pending commits, which refs/notes/airlock describes.
		if at[ref] != "" && (of.evidence && ref != review.NotesRef || of.verdicts && (ref == review.NotesRef || ref == promote.NotesRef)) {
			refs = append(refs, ref)
		}
	}
	runs := false
	for _, ref := range slices.Sorted(maps.Keys(at)) {
		runs = runs || strings.HasPrefix(ref, record.RefPrefix)
		if isPending, _ := path.Match("refs/airlock/*/pending", ref); isPending {
			pending = append(pending, "+"+ref+":"+ref)
		}
	}
	if of.pending {
		refs = append(refs, pending...)
	}
	if of.runs && runs {
		refs = append(refs, cmdline.RunRefs)
	}
	return refs, nil
}
