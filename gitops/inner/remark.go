package inner

import (
	"context"
	"io"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// Remark is a text about a commit, by an invented author.
type Remark struct {
	Commit     gitops.OID
	Text       string
	Name, Mail string
}

// remark is a script for sh that adds a text to the notes on a commit, and makes git log show these notes. Argument: the commit. It
// adds no text twice, so that it can be repeated after an interruption, and does nothing if the commit is gone.
const remark = `g() { git -c core.hooksPath=/dev/null -c core.fsmonitor=false "$@"; }
text=$(cat)
g cat-file -e "$1^{commit}" 2>/dev/null || exit 0
g config --get-all notes.displayRef | grep -qx refs/notes/review || g config --add notes.displayRef refs/notes/review || exit 1
between='

'
case "$between$(g notes --ref=review show "$1" 2>/dev/null)$between" in *"$between$text$between"*) exit 0 ;; esac
printf '%s\n' "$text" | g notes --ref=review append -F - "$1"
`

// Remark adds a text to the notes in refs/notes/review of the inner repository.
func (w Workspace) Remark(ctx context.Context, r Remark) error {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	var stderr gitops.Stderr
	env := append(w.innerEnv(), "GIT_AUTHOR_NAME="+r.Name, "GIT_AUTHOR_EMAIL="+r.Mail, "GIT_COMMITTER_NAME="+r.Name, "GIT_COMMITTER_EMAIL="+r.Mail)
	code, err := w.Run(ctx, Process{Argv: []string{"sh", "-c", remark, "sh", string(r.Commit)}, Env: env,
		Stdin: strings.NewReader(asGitKeeps(r.Text)), Stdout: io.Discard, Stderr: &stderr})
	return failure("add a note to "+string(r.Commit), code, stderr.String(), err)
}

// asGitKeeps removes the white space from a text that git notes would remove (git-stripspace(1)), so that the text is found again.
func asGitKeeps(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n\v\f")
		if line != "" || len(kept) > 0 && kept[len(kept)-1] != "" {
			kept = append(kept, line)
		}
	}
	return strings.TrimRight(strings.Join(kept, "\n"), "\n") + "\n"
}
