package cmdline

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/promote/record/store"
	"github.com/git-airlock/git-airlock/words"
)

// RemoteOf returns the remote that the words of a command name, or else origin.
func RemoteOf(c *cli.Context, names []string) (string, error) {
	remote := "origin"
	if len(names) > 0 {
		remote = names[0]
	}
	if strings.HasPrefix(remote, "-") {
		return "", ui.Usagef("%s: %q is not a remote", CommandName(c), gitops.Text(remote))
	}
	return remote, nil
}

// RemoteError adds a hint to an error of a git command that talks to a remote.
func RemoteError(err error, next string) error {
	if _, ok := errors.AsType[*gitops.Error](err); ok {
		return environment.Advise(err, next)
	}
	return err
}

// RunRefs names all records of runs for [Push].
const RunRefs = record.RefPrefix + "*:" + record.RefPrefix + "*"

// pushOptions make git push only the refs that the command names. Without them, settings of the user can add tags (push.followTags) and
// other repositories (push.recurseSubmodules, submodule.recurse). Git uses other settings of this kind only if a push names no refs.
var pushOptions = []string{"--no-follow-tags", "--no-recurse-submodules"}

// RejectedError reports that the values of some refs on a remote are not contained in the values here.
type RejectedError struct {
	Refs []string
	err  error
}

// Error implements error.
func (e *RejectedError) Error() string {
	return "the remote has something in " + gitops.Text(strings.Join(e.Refs, " ")).String() + " that is not here"
}

// Unwrap returns git's error.
func (e *RejectedError) Unwrap() error { return e.err }

// Push pushes refs, and prints the command. If the remote's values of refs are not contained in those here, the error is a
// [RejectedError]. A dry run asks the remote, as git's own does, but runs no hook, since a hook could change something.
func Push(c *cli.Context, s *session.Session, remote string, refs ...string) error {
	line := "git push " + strings.Join(pushOptions, " ") + " " + gitops.Pasteable(remote)
	for _, ref := range refs {
		line += " " + gitops.Pasteable(ref)
	}
	s.Report.Say("%s", line)
	var out bytes.Buffer
	push, options := s.Repo.Change, []string{"push", "--porcelain"}
	if s.Dry {
		push, options = s.Repo.Look, append(options, "--dry-run", "--no-verify")
	}
	err := push(c.Context, gitops.Call{Args: slices.Concat(options, pushOptions, []string{remote}, refs), Stdout: &out})
	if rejected := rejectedIn(out.String()); err != nil && len(rejected) > 0 {
		err = &RejectedError{rejected, err}
	}
	return RemoteError(err, line)
}

// rejectedIn returns the refs that git push --porcelain did not send. It leaves out refs that the remote refused for a reason of its own.
func rejectedIn(porcelain string) (refs []string) {
	for line := range strings.Lines(porcelain) {
		fields := strings.SplitN(line, "\t", 3)
		if len(fields) == 3 && fields[0] == "!" && strings.HasPrefix(fields[2], "[rejected] ") {
			_, to, _ := strings.Cut(fields[1], ":")
			refs = append(refs, to)
		}
	}
	return refs
}

// sayLeft reports refs of a remote that were left out, and why.
func sayLeft(s *session.Session, refs []string, why string) {
	if n := len(refs); n > 0 {
		s.Report.Say("left out: %s that cannot be records%s; the first is %s", words.Count(n, "ref"), why, gitops.Text(refs[0]))
	}
}

// FetchRuns fetches the records that a remote has and this repository has not, and prints the command.
func FetchRuns(c *cli.Context, s *session.Session, remote string) error {
	here, err := s.Store.List()
	if err != nil {
		return err
	}
	var mine []string
	for _, r := range here {
		mine = append(mine, r.Session)
	}
	next := fmt.Sprintf("git ls-remote %s '%s*'", gitops.Pasteable(remote), record.RefPrefix)
	offer, err := store.Offered(c.Context, s.Repo, remote, mine)
	if err != nil {
		return RemoteError(err, next)
	}
	sayLeft(s, offer.Left, ", that other commits have here, or that are of an airlock here")
	if len(offer.New) == 0 {
		s.Report.Say("the remote has no new records")
		return nil
	}
	s.Report.Say("%s", fetchLine(remote, offer.New))
	if s.Dry {
		return nil
	}
	left, err := store.Fetch(c.Context, s.Repo, remote, offer.New)
	if err != nil {
		return RemoteError(err, next)
	}
	sayLeft(s, left, ", because they are not commits")
	store.PackRefs(c.Context, s.Repo)
	return nil
}

// fetchLine returns the command that fetches some refs, to be shown.
func fetchLine(remote string, refs []string) string {
	line := "git fetch --no-prune --no-tags " + gitops.Pasteable(remote)
	for _, ref := range refs {
		line += " " + ref + ":" + ref
	}
	return line
}
