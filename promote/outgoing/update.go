package outgoing

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// Update is a line of the standard input of a pre-push hook (githooks(5)): a remote ref that a push changes.
type Update struct {
	Local  gitops.OID // empty if the push deletes the remote ref
	Remote gitops.OID // the value that the remote ref has now; empty if there is none
}

// forReview reports whether a remote ref is one by which colleagues exchange verdicts, and commits to review.
func forReview(ref string) bool {
	return strings.HasPrefix(ref, "refs/airlock/") || strings.HasPrefix(ref, "refs/notes/")
}

const (
	updateLines = 200_000
	updateLine  = 16 << 10
)

// errManyUpdates reports that a push changes more refs than are read.
var errManyUpdates = errors.New("the push changes too many refs")

// ReadUpdates reads the standard input of a pre-push hook.
func ReadUpdates(in io.Reader) ([]Update, error) {
	var updates []Update
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 1<<10), updateLine)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), " ")
		if len(updates) == updateLines {
			return nil, errManyUpdates
		}
		if len(fields) != 4 {
			return nil, fmt.Errorf("%q is not a line of a pre-push hook's input", gitops.Text(lines.Text()))
		}
		var u Update
		for _, f := range []struct {
			text string
			into *gitops.OID
		}{{fields[1], &u.Local}, {fields[3], &u.Remote}} {
			id, err := gitops.ParseOID(f.text)
			if err != nil {
				return nil, err
			}
			if id != id.Zero() {
				*f.into = id
			}
		}
		if !forReview(fields[2]) {
			updates = append(updates, u)
		}
	}
	return updates, lines.Err()
}
