package pushcheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/checks"
	"github.com/git-airlock/git-airlock/promote/exchange"
	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/outgoing"
	"github.com/git-airlock/git-airlock/promote/proposal"
	"github.com/git-airlock/git-airlock/promote/review"
)

var errNothing = errors.New("no commits for a pull request")

// Propose describes the pull request of the checked-out branch. base is a branch of the remote, or empty for its default branch,
// which Propose then returns.
func Propose(ctx context.Context, s *session.Session, base string) (p proposal.Proposal, onto string, err error) {
	head, err := s.Repo.Head(ctx)
	if err == nil && head.Branch == "" {
		err = hold.Detached(s.Repo)
	}
	if err != nil {
		return p, "", err
	}
	p.Branch = strings.TrimPrefix(head.Branch, "refs/heads/")
	onto, from, err := baseOf(ctx, s, p.Branch, base)
	if err != nil {
		return p, "", err
	}
	made, err := outgoing.Find(ctx, s.Repo, s.Store, outgoing.Range{Tips: []gitops.OID{head.Commit}, Without: []gitops.OID{from}}, reviewers(ctx, s))
	if err != nil {
		return p, onto, err
	}
	text, err := s.Repo.Output(ctx, "rev-list", "--count", string(from)+".."+string(head.Commit), "--")
	if err != nil {
		return p, onto, err
	}
	all, err := strconv.Atoi(text)
	if err != nil || all == 0 {
		return p, onto, errors.Join(err, nothing(p.Branch, onto))
	}
	if all == 1 {
		list, err := s.Repo.Noted(ctx, promote.NotesRef, []string{string(head.Commit)}, "--no-walk=unsorted")
		if err != nil || len(list) != 1 {
			return p, onto, errors.Join(err, errNothing)
		}
		p.First = list[0].Subject
	}
	p.Others = all - len(made)
	p.Rows, err = rows(ctx, s, made)
	return p, onto, err
}

// nothing returns the error for a branch without commits for a pull request.
func nothing(branch, onto string) error {
	if branch == onto {
		return environment.Advise(fmt.Errorf("%w: you are on %s, into which one would merge", errNothing, gitops.Text(onto)),
			"git switch -c BRANCH  # before the agent begins", "git airlock pr --base BRANCH")
	}
	return environment.Advise(fmt.Errorf("%w: %s has none that %s lacks", errNothing, gitops.Text(branch), gitops.Text(onto)), "git airlock status  # whether commits wait")
}

// ToPush returns the commands that push the branch of a pull request and the notes on its commits, which git does not push by itself. It
// leaves out the branch if the remote had the branch's commit when git last talked to it.
func ToPush(ctx context.Context, s *session.Session, p proposal.Proposal) ([]string, error) {
	remote := remoteOf(s.Config, p.Branch)
	tracking := "refs/remotes/" + remote + "/" + p.Branch
	refs, err := s.Repo.Refs(ctx, append([]string{"refs/heads/" + p.Branch, tracking}, exchange.NoteRefs...)...)
	if err != nil {
		return nil, err
	}
	var lines []string
	if refs[tracking] != refs["refs/heads/"+p.Branch] {
		lines = append(lines, pushLine(remote, p.Branch))
	}
	notes := ""
	for _, ref := range exchange.NoteRefs {
		if refs[ref] != "" && len(p.Rows) > 0 {
			notes += " " + ref
		}
	}
	if notes != "" {
		lines = append(lines, "git push "+gitops.Pasteable(remote)+notes+"  # a plain git push leaves the notes here")
	}
	return lines, nil
}

func pushLine(remote, branch string) string {
	return "git push -u " + gitops.Pasteable(remote) + " " + gitops.Pasteable(branch)
}

// remoteOf returns the remote to which git pushes a branch.
func remoteOf(c gitops.Config, branch string) string {
	return c.String("branch."+branch+".pushRemote", c.String("remote.pushDefault", c.String("branch."+branch+".remote", "origin")))
}

// baseOf returns the name of a remote's branch, and its commit here. Without a name it is the remote's default branch.
func baseOf(ctx context.Context, s *session.Session, branch, name string) (string, gitops.OID, error) {
	remote := remoteOf(s.Config, branch)
	at := "refs/remotes/" + remote + "/"
	names := []string{name}
	if name == "" {
		head, err := s.Repo.SymbolicRef(ctx, at+"HEAD")
		if names = []string{"main", "master"}; err == nil && strings.HasPrefix(head, at) {
			names = []string{strings.TrimPrefix(head, at)}
		}
	}
	for _, n := range names {
		for _, ref := range []string{at + n, "refs/heads/" + n} {
			if id, err := s.Repo.Ref(ctx, ref); err == nil && id != "" {
				return n, id, nil
			}
		}
	}
	err := fmt.Errorf("there is no branch %s, here or of the remote %s", gitops.Text(strings.Join(names, " or ")), gitops.Text(remote))
	return "", "", environment.Advise(err, "git fetch "+gitops.Pasteable(remote), "git airlock pr --base BRANCH")
}

// rows describes commits, with the hosts that their notes name.
func rows(ctx context.Context, s *session.Session, made []outgoing.Commit) ([]proposal.Row, error) {
	notes, err := outgoing.Notes(ctx, s.Repo, promote.EgressRef, made)
	if err != nil {
		return nil, err
	}
	checked, err := checkedTrees(ctx, s, made)
	var list []proposal.Row
	for _, c := range made {
		r := proposal.Row{Commit: c.ID, Subject: c.Subject.Raw(), Tree: c.Note["Tree"], Gate: c.Note["Policy"], Check: checked[c.Tree],
			Isolated: strings.Contains(" "+c.Note["Isolation"]+" ", " network=none ")}
		for _, id := range c.Names() {
			for _, host := range reached(notes[id]) {
				if !slices.Contains(r.Hosts, host) {
					r.Hosts = append(r.Hosts, host)
				}
			}
		}
		if c.Original != "" {
			r.Tree = "rewritten"
		}
		if c.Unsure() {
			r.Perhaps = c.Original
		}
		if c.Last().Word == review.Approve {
			r.Reviewers = approvers(c)
		}
		list = append(list, r)
	}
	return list, err
}

// checkedTrees maps the trees of commits to the word for their newest result here, see [checks.Word]. Where no check ran here, but a note has
// a result, the text names the note, since anyone who can push notes can write it.
func checkedTrees(ctx context.Context, s *session.Session, made []outgoing.Commit) (map[gitops.OID]string, error) {
	texts := map[gitops.OID]string{}
	check, err := checks.Read(ctx, s.Repo, s.Config)
	if err != nil {
		return texts, err
	}
	here, err := checks.Here(s.Repo)
	if err != nil {
		return texts, err
	}
	var noted []gitops.OID
	if at, err := s.Repo.Ref(ctx, checks.NotesRef); err != nil {
		return texts, err
	} else if at != "" {
		if noted, err = s.Repo.NotedIDs(ctx, checks.NotesRef); err != nil {
			return texts, err
		}
	}
	for _, c := range made {
		texts[c.Tree] = checks.Word(here[c.Tree], check.Command)
		if texts[c.Tree] != "" || !slices.Contains(noted, c.Tree) {
			continue
		}
		note, err := s.Repo.Note(ctx, checks.NotesRef, c.Tree)
		if err != nil {
			return texts, err
		}
		if word := checks.Word(checks.Parse(note, c.Tree), check.Command); word != "" {
			texts[c.Tree] = "not run here (a note says " + word + ")"
		}
	}
	return texts, nil
}

// reached returns the hosts in a note about the network.
func reached(note string) (hosts []string) {
	for line := range strings.Lines(note) {
		if value, ok := strings.CutPrefix(line, "Airlock-Reached: "); ok {
			host, _, _ := strings.Cut(strings.TrimSpace(value), " ")
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// approvers returns the names of those who approve a commit, without their addresses.
func approvers(c outgoing.Commit) (names []string) {
	for _, v := range c.Verdicts {
		name, _, _ := strings.Cut(v.By, " <")
		if v.Word == review.Approve && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// ghLimit bounds the output of gh.
const ghLimit = 1 << 20

// escaped prints the lines of another program.
func escaped(to io.Writer, text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintln(to, gitops.Text(strings.TrimRight(line, "\r\n")))
	}
}

// Create makes the pull request with gh(1), which the user has outside of the work tree.
func Create(ctx context.Context, s *session.Session, p proposal.Proposal, base string, out, errs io.Writer) error {
	push := pushLine(remoteOf(s.Config, p.Branch), p.Branch)
	gh, err := hostenv.UserProgram("gh")
	if err != nil {
		return environment.Advise(err, push, "git airlock pr --print  # paste it where you make the pull request")
	}
	if s.Dry {
		s.Report.Say("would run: gh pr create --head %s --base %s --title %s", gitops.Pasteable(p.Branch), gitops.Pasteable(base), gitops.Pasteable(p.Title()))
		return nil
	}
	cmd := exec.CommandContext(ctx, gh, "pr", "create", "--head="+p.Branch, "--base="+base, "--title="+p.Title(), "--body-file=-")
	cmd.Dir, cmd.Stdin = s.Repo.Top, strings.NewReader(p.Body())
	var printed, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = gitops.CapOutput(&printed, ghLimit), gitops.CapOutput(&said, ghLimit)
	err = cmd.Run()
	escaped(out, printed.String())
	escaped(errs, said.String())
	if err != nil {
		return environment.Advise(fmt.Errorf("gh pr create: %w", err), push)
	}
	return nil
}
