package verdict

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/words"
)

// Interdiff is what the agent changed when it amended a commit, as escaped text.
type Interdiff struct {
	Text string
	// Part reports that something is not in the text: the end of a long change, or the content of a binary file.
	Part bool
}

// interdiffLimit bounds the bytes of an interdiff. The rest is left out.
const interdiffLimit = 1 << 20

// Interdiffs returns what the agent changed when it amended commits, by the inner commit. The changes of a
// commit that was replaced are first moved onto the parent of the commit in its place, so that a rebase alone shows nothing.
// The map has no entry for a commit if the changes cannot be moved without a conflict, or if the replaced commit is gone.
func Interdiffs(ctx context.Context, e *promote.Engine, list []Reviewable, colour bool) (map[gitops.OID]Interdiff, error) {
	all := map[gitops.OID]Interdiff{}
	if e.Repo.Dry || !slices.ContainsFunc(list, Reviewable.amended) {
		return all, nil
	}
	q, err := open(ctx, e, Request{})
	if err != nil {
		return nil, err
	}
	defer q.Close()
	for _, r := range list {
		if !r.amended() {
			continue
		}
		var text bytes.Buffer
		compared, part, err := q.interdiff(ctx, r, &text, colour)
		if err != nil {
			return nil, err
		}
		if compared {
			all[r.Inner] = Interdiff{text.String(), part || strings.Contains("\n"+text.String(), "\nBinary files ")}
		}
	}
	return all, nil
}

func (r Reviewable) amended() bool { return r.Before != "" && r.Commit != "" }

// interdiff writes the difference between a commit and the one that it replaces. part reports that the end is left out.
func (q *request) interdiff(ctx context.Context, r Reviewable, out io.Writer, colour bool) (compared, part bool, err error) {
	bridge, inspector, err := q.Bridge(ctx)
	if err != nil {
		return false, false, err
	}
	var commits, parents [2]gitops.Commit
	for i, id := range []gitops.OID{r.Before, r.Commit} {
		if commits[i], err = inspector.Commit(ctx, id); err != nil || len(commits[i].Parents) == 0 {
			return false, false, nil //nolint:nilerr // the user's git gc may have removed a replaced commit
		}
		if parents[i], err = inspector.Commit(ctx, commits[i].Parents[0]); err != nil {
			return false, false, nil //nolint:nilerr // likewise
		}
	}
	moved, conflicts, err := bridge.Merge(ctx, quarantine.Merge{Base: parents[0].Tree, Ours: parents[1].Tree, Theirs: commits[0].Tree})
	if gitops.Crashed(err) || err == nil && len(conflicts) > 0 {
		return false, false, nil //nolint:nilerr // the whole change is shown instead
	}
	if err != nil {
		return false, false, err
	}
	if !bytes.Equal(commits[0].Message, commits[1].Message) {
		part = printMessages(out, commits[0].Message, commits[1].Message)
	}
	err = bridge.ShowTrees(ctx, out, colour, interdiffLimit, moved, commits[1].Tree)
	if errors.Is(err, gitops.ErrLargePatch) {
		part = true
		_, err = fmt.Fprintln(out, "(the rest is left out)")
	}
	return true, part, err
}

// MessageLimit bounds the bytes of a message that are printed.
const MessageLimit = 256 << 10

// printMessages prints an old and a new commit message, escaped. part reports that the end of one is left out, which it says.
func printMessages(out io.Writer, before, after []byte) (part bool) {
	fmt.Fprintln(out, "message:")
	for _, m := range []struct {
		sign string
		text []byte
	}{{"-", before}, {"+", after}} {
		shown := m.text[:min(len(m.text), MessageLimit)]
		part = PrintMessage(out, m.sign, shown, len(m.text)-len(shown)) || part
	}
	return part
}

// PrintMessage prints the lines of a message, escaped, each after a sign. left is the number of bytes that are left out at the end. part
// reports that there are such bytes, which PrintMessage says.
func PrintMessage(out io.Writer, sign string, message []byte, left int) (part bool) {
	for line := range bytes.Lines(message) {
		printLine(out, sign, bytes.TrimSuffix(line, []byte("\n")))
	}
	if left > 0 {
		fmt.Fprintf(out, "(%s of this message are left out)\n", words.Count(left, "byte"))
	}
	return left > 0
}

// printLine prints a line, escaped. A text has a maximum length, so a long line is printed in pieces.
func printLine(out io.Writer, sign string, line []byte) {
	const most = 4000
	fmt.Fprint(out, sign)
	for len(line) > most {
		n := most
		for n > most-utf8.UTFMax && !utf8.RuneStart(line[n]) {
			n--
		}
		fmt.Fprint(out, gitops.Text(line[:n]))
		line = line[n:]
	}
	fmt.Fprintln(out, gitops.Text(line))
}
