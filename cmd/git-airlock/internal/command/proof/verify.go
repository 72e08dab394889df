package proof

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/evidence"
	"github.com/git-airlock/git-airlock/promote/policy"
	"github.com/git-airlock/git-airlock/words"
)

const (
	requireFlag = "require"
	signersFlag = "signers"
	ignoreFlag  = "ignore-missing"
	checkedFlag = "checked-here"
)

func verifyCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "verify", Usage: "verify the evidence of commits, offline and without an airlock",
		UsageText: "git airlock verify [--require LIST]... [--signers FILE] [--ignore-missing] [--checked-here] [--json] REV|RANGE",
		Description: "Each landed commit has a signed statement in " + evidence.NotesRef + ": how the agent was kept in, what the gate found, who\n" +
			"approved the commit, what was reached over the network. verify finds the statement of each commit, or else of its tree, or\n" +
			"else of a commit with the same patch-id, as after a squash, a rebase or a cherry-pick. It prints \"by tree of ID\" then, with\n" +
			"the commit that the statement is about. A tree has the files, but the message, the author, the parents and the change of\n" +
			"your commit can be others. A patch-id has the changed lines, and not their place: exact refuses it, and commit refuses both.\n" +
			"verify checks the signature, and that no statement of the session before the newest one is missing.\n\n" +
			"The words of LIST, separated by commas, ask for more:\n\n" +
			"     signed         the key is in the list of signers, if any\n" +
			"     commit         the statement is about the commit itself\n" +
			"     contained      a filter of system calls held the agent\n" +
			"     exact          the tree is the agent's, byte for byte\n" +
			"     network=VALUE  the prison's network, for example none\n" +
			"     review         the commit that landed was approved before\n" +
			"     closed         the last statement of the session is there\n" +
			"     check=COMMAND  this airlock.check passed before it landed\n\n" +
			"COMMAND is the rest of its option, with all commas. Give --require again for words after it.\n\n" +
			"Signers are listed as in ssh-keygen(1), in FILE, or else in " + evidence.SignersFile + " of " + policy.TeamRef + ". With FILE, signed is\n" +
			"required. Each line says whose word the evidence is: \"self\" is a key of the machine with the agent, for which nobody\n" +
			"vouches, \"team\" is a key in the list, and \"ci\" is either of them in a job that says --checked-here, since it has checked the\n" +
			"same commits again (git-airlock-check(1)). Whoever controls the machine with the agent can sign anything there.\n\n" +
			"The exit status is 0 if all commits are verified, 1 if evidence of one is wrong or does not show what is required, and 3 if\n" +
			"evidence, an object or a key is missing. With --ignore-missing, commits without any evidence, such as your own, are only\n" +
			"listed. Whoever removes the notes of a commit makes it one of them. verify works in a bare repository, too.",
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: requireFlag, Usage: "what the evidence of each commit must show: a `LIST` of the words above"},
			&cli.StringFlag{Name: signersFlag, Usage: "read the keys that count from `FILE`"},
			&cli.BoolFlag{Name: ignoreFlag, Usage: "list commits without evidence only"},
			&cli.BoolFlag{Name: checkedFlag, Usage: "say that this job has checked the commits again"},
			cmdline.JSONFlag,
		},
		Action: cmdline.InAnyRepository(verify),
	}, cmdline.Takes{Least: 1, Most: 1})
}

// verify verifies commits. Before, it makes the statements that are missing, except in a bare repository, which no airlock lands in, and in a
// copy, whose airlock the original has.
func verify(c *cli.Context, s *session.Session, inert bool) error {
	if !inert {
		s.Attest(c.Context)
	}
	v, err := verifierOf(c, s)
	if err != nil {
		return err
	}
	ids, err := cmdline.CommitsNamed(c.Context, s, cmdline.Words(c)[0])
	if err != nil {
		return err
	}
	var list []gitops.Noted
	if len(ids) > 0 {
		if list, err = s.Repo.Noted(c.Context, "", gitops.Names(ids), "--no-walk=unsorted"); err != nil { // the verifier reads the notes, and bounds them
			return err
		}
	}
	rows := make([]row, 0, len(list))
	patches := patchIDs{ctx: c.Context, repo: s.Repo, of: ids}
	for _, n := range list {
		commit := evidence.Commit{ID: n.ID, Tree: n.Tree, Patch: func() string { return patches.find(n.ID) }, Again: c.Bool(checkedFlag)}
		r := row{Noted: n, verdict: v.Verify(commit)}
		r.ignored = c.Bool(ignoreFlag) && r.verdict.By == "" && r.verdict.Missing()
		rows = append(rows, r)
	}
	// A commit with a statement needs no patch-id, which a partial clone may lack the objects for.
	if patches.err != nil && slices.ContainsFunc(rows, func(r row) bool { return r.verdict.By == "" }) {
		return patches.err
	}
	if err := relate(c.Context, s.Repo, rows); err != nil {
		return err
	}
	result := resultOf(rows)
	err = cmdline.Print(c, s, true, documentOf(rows, result), func(out io.Writer, p ui.Paint) error {
		for _, r := range rows {
			if err := r.print(out, p); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintln(out, result.text)
		return err
	})
	if err != nil || result.err == nil {
		return err
	}
	return cmdline.Shown(result.err)
}

// verifierOf returns the verifier that the options ask for.
func verifierOf(c *cli.Context, s *session.Session) (*evidence.Verifier, error) {
	lists := c.StringSlice(requireFlag)
	if c.IsSet(signersFlag) {
		lists = append([]string{"signed"}, lists...)
	}
	required, err := evidence.ParseRequirements(lists...)
	if err != nil {
		return nil, ui.Usagef("verify: --%s: %v", requireFlag, err)
	}
	signers, err := signersOf(c, s)
	if err != nil {
		return nil, err
	}
	store, err := evidence.Read(c.Context, s.Repo)
	if err != nil && s.Config.Partial() {
		err = &environment.Refusal{Text: err.Error(), Next: []string{
			"git fetch --refetch --no-filter REMOTE " + evidence.NotesRef + "  # this partial clone may lack objects of the notes"}}
	}
	return &evidence.Verifier{Store: store, Signers: signers, Required: required}, err
}

// signersOf returns the list of signers, nil if there is none.
func signersOf(c *cli.Context, s *session.Session) (evidence.Signers, error) {
	if name := c.String(signersFlag); c.IsSet(signersFlag) {
		content, err := readSigners(name)
		if err != nil {
			return nil, environment.Advise(&session.RequestError{Text: fmt.Sprintf("--%s: %v", signersFlag, err)}, "man ssh-keygen  # ALLOWED SIGNERS")
		}
		signers, err := evidence.ParseSigners(content)
		if err != nil {
			return nil, &session.RequestError{Text: fmt.Sprintf("%q: %v", gitops.Text(name), err)}
		}
		return signers, nil
	}
	ref, err := s.Repo.Ref(c.Context, policy.TeamRef)
	if err != nil || ref == "" {
		return nil, err
	}
	listed, err := hasSigners(c.Context, s, ref)
	if err != nil || !listed {
		return nil, err
	}
	var signers evidence.Signers
	content, err := s.Repo.File(c.Context, ref, evidence.SignersFile, evidence.SignersLimit)
	if err == nil {
		signers, err = evidence.ParseSigners(content)
	}
	if err != nil {
		return nil, fmt.Errorf("%s:%s: %w", policy.TeamRef, evidence.SignersFile, err)
	}
	return signers, nil
}

// readSigners reads a list of signers from a regular file: the open of a pipe would wait for a writer, also after a ^C.
func readSigners(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > evidence.SignersLimit {
		return nil, fmt.Errorf("%q is not a regular file of at most %d bytes", gitops.Text(name), evidence.SignersLimit)
	}
	return os.ReadFile(name)
}

// hasSigners reports whether a policy has a list of signers. A policy of a single file has none.
func hasSigners(ctx context.Context, s *session.Session, at gitops.OID) (bool, error) {
	kind, err := s.Repo.Output(ctx, "cat-file", "-t", string(at))
	if err != nil || kind == "blob" {
		return false, err
	}
	entry, err := s.Repo.Output(ctx, "ls-tree", string(at), "--", evidence.SignersFile)
	return entry != "", err
}

// patchIDs computes the patch-ids of all commits when the first one is needed.
type patchIDs struct {
	ctx  context.Context
	repo *gitops.Repository
	of   []gitops.OID
	ids  map[gitops.OID]string
	err  error
}

func (p *patchIDs) find(commit gitops.OID) string {
	if p.ids == nil && p.err == nil {
		p.ids, p.err = p.repo.VerbatimPatchIDs(p.ctx, p.of, evidence.PatchLimit)
	}
	return p.ids[commit]
}

var (
	// errNotVerified reports commits whose evidence is wrong, which were printed.
	errNotVerified = errors.New("not verified")
	// errMissing reports commits without evidence, which were printed.
	errMissing = &environment.Refusal{Text: "evidence is missing"}
)

// result sums up the rows.
type result struct {
	text string
	err  error // nil if all are verified
}

func resultOf(rows []row) result {
	count := map[string]int{} // by the word of the verdict
	for _, r := range rows {
		count[r.word()]++
	}
	text := fmt.Sprintf("%s verified", words.Count(count["verified"], "commit"))
	for _, more := range []struct{ word, what string }{{"failed", "failed"}, {"missing", "with something missing"}, {"none", "without evidence"}} {
		if n := count[more.word]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, more.what)
		}
	}
	switch {
	case count["failed"] > 0:
		return result{text, errNotVerified}
	case count["missing"] > 0:
		return result{text, errMissing}
	}
	return result{text, nil}
}
