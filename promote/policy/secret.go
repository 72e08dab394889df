package policy

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy/secrets"
)

// secret finds keys and tokens in the added lines of a commit. A secret with a known form holds the commit. A value that only stands next to a
// word like "password" is rarely a secret, so it is only flagged.
type secret struct {
	placeholders []string // look like keys, but are not secret
}

func (s secret) change(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	f, err := in.read(ctx, c)
	if err != nil || f.binary {
		return err
	}
	for runs := f.runs; len(runs) > 0; {
		part, among := surrounded(f.head, runs)
		if err := errors.Join(ctx.Err(), in.meter.spend(searchCost*int64(len(part.text)))); err != nil {
			return err
		}
		touches, before := touching(runs[:among]), part.line-1
		counts := func(m secrets.Match) bool { return touches(before+m.Line, before+m.Last) }
		near := make([]secrets.Part, among)
		for i, r := range runs[:among] {
			near[i] = secrets.Part{From: r.at - part.at, To: r.at - part.at + len(r.text)}
		}
		for _, m := range secrets.Default().FindNear(c.Path, blanked(part.text, s.placeholders), near, counts) {
			reportSecret(r, c.Path, before+m.Line, m)
		}
		runs = runs[among:]
	}
	in.unsearched(f, r)
	return nil
}

// contextBytes is the number of bytes around added lines that are searched with them, because the first and the last line
// of a key may have existed before.
const contextBytes = 8 << 10

// surrounded returns the text around the first run and the next runs that are near to it, and the number of these runs.
func surrounded(text []byte, runs []run) (part run, among int) {
	from := bytes.LastIndexByte(text[:max(0, runs[0].at-contextBytes)], '\n') + 1
	to := 0
	for _, r := range runs {
		if among > 0 && r.at-contextBytes > to {
			break
		}
		to = min(len(text), r.at+len(r.text)+contextBytes)
		among++
	}
	if end := bytes.IndexByte(text[to:min(len(text), to+contextBytes)], '\n'); end >= 0 {
		to += end + 1
	}
	return run{runs[0].line - bytes.Count(text[from:runs[0].at], []byte("\n")), from, text[from:to]}, among
}

// touching returns a function that reports whether one of the lines from first to last is in a run.
func touching(runs []run) func(first, last int) bool {
	ends := make([]int, len(runs))
	for i, r := range runs {
		ends[i] = r.line + bytes.Count(bytes.TrimRight(r.text, "\n"), []byte("\n"))
	}
	return func(first, last int) bool {
		i, _ := slices.BinarySearch(ends, first)
		return i < len(runs) && runs[i].line <= last
	}
}

func (s secret) commit(_ context.Context, in *inspection, r *report) error {
	for _, m := range secrets.Default().Find("", blanked(in.Message, s.placeholders)) {
		reportSecret(r, "", m.Line, m)
	}
	return nil
}

func reportSecret(r *report, path string, line int, m secrets.Match) {
	add, where := r.at, "line %d: %s"
	if m.Guess {
		add = r.mention
	}
	if path == "" {
		where = "message, line %d: %s"
	}
	if m.Encoded {
		where += " in Base64"
	}
	add(path, where, line, m.Rule)
}

// largeFile finds files that would stay in everyone's clone for ever.
type largeFile struct {
	limit int64
	from  Source // the source of the limit
}

const largeFileID = "large-file"

func (l largeFile) description() Description {
	if l.from == fromTeam {
		return documented(largeFileID, Hold, "a file larger than "+SizeText(l.limit)+" (team)")
	}
	return documented(largeFileID, Hold, "a file larger than "+maxFileSizeKey+" ("+SizeText(l.limit)+")")
}

func (l largeFile) change(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	f, err := in.read(ctx, c)
	if err == nil && f.size > l.limit {
		by := maxFileSizeKey
		if l.from == fromTeam { // the user's own setting would not change it
			by = "the team's policy"
		}
		r.at(c.Path, "%d bytes, more than %s allows (%d)", f.size, by, l.limit)
	}
	return err
}
