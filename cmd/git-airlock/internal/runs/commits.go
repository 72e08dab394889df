package runs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/passed"
	"github.com/git-airlock/git-airlock/promote"
	promoted "github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/policy"
	"github.com/git-airlock/git-airlock/promote/policy/secrets"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/words"
)

// maxCommits bounds the commits of a record.
const maxCommits = 10_000

// gitTime bounds each read of commits by git. The commits are the agent's, and can be such that git needs hours.
var gitTime = time.Minute

// timely runs a function that reads with git. If git does not end in time, the visibility of the record says what is missing.
func (g *gathering) timely(ctx context.Context, missing string, read func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	err := read(bounded)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		g.visibility = append(g.visibility, fmt.Sprintf("git did not read %s within %s", missing, gitTime))
		return nil
	}
	return err
}

// commits adds the list of the run's commits: those that landed since its beginning, and those that wait.
func (g *gathering) commits(ctx context.Context) error {
	r := g.Record
	refs, err := g.Prisons.Repo.Refs(ctx, r.Ref("promoted"), r.Ref("pending"))
	if err != nil {
		return err
	}
	l, err := promoted.Read(g.dir(), promoted.Pair{Inner: r.Root, Outer: r.Base}, refs[r.Ref("promoted")], refs[r.Ref("pending")])
	if err != nil {
		return err
	}
	g.landed, g.pending = l.Landed[min(g.Landed, len(l.Landed)):], l.Tail
	g.Manifest.Landed = len(g.landed)
	var lines []record.Commit
	for _, part := range []struct {
		state record.CommitState
		pairs []promoted.Pair
	}{{record.Landed, g.landed}, {record.Pending, g.pending}} {
		for _, p := range part.pairs[:min(len(part.pairs), maxCommits)] {
			lines = append(lines, record.Commit{State: part.state, Inner: p.Inner, Outer: p.Outer})
		}
	}
	err = g.timely(ctx, "the trees, parents and subjects of the commits", func(ctx context.Context) error { return g.describe(ctx, lines) })
	if err != nil {
		return err
	}
	g.put(record.CommitsName, record.EncodeCommits(lines), record.File{})
	return errors.Join(g.flags(l), g.timely(ctx, "the notes of the landed commits", g.noted))
}

// flags adds the rules with findings in the run's landed commits.
func (g *gathering) flags(l *promoted.Ledger) error {
	results, err := promoted.ReadGateResults(g.dir(), promoted.NoRules, l)
	if err != nil {
		return err
	}
	meanings := map[string]string{}
	for _, rule := range policy.Rules() {
		meanings[rule.ID] = rule.Doc
	}
	for _, f := range results.Flagged(l) {
		if !slices.ContainsFunc(g.landed, func(p promoted.Pair) bool { return p.Outer == f.Commit }) {
			continue
		}
		for _, rule := range f.Rules {
			g.Manifest.Flagged = append(g.Manifest.Flagged, record.Flag{Commit: f.Commit, Rule: rule, Meaning: meanings[rule]})
		}
	}
	return nil
}

// describe adds trees and subjects, and the parents to the manifest.
func (g *gathering) describe(ctx context.Context, lines []record.Commit) error {
	if len(lines) == 0 {
		return nil
	}
	var names strings.Builder
	for _, c := range lines {
		fmt.Fprintln(&names, c.Outer)
	}
	records, err := g.Prisons.Repo.Records(ctx, gitops.Call{Args: []string{"log", "-z", "--no-walk=unsorted", "--stdin", "--no-notes", "--format=%H %T%x09%P%x09%s"},
		Stdin: strings.NewReader(names.String())})
	if err != nil {
		return err
	}
	found := map[gitops.OID]string{}
	for _, line := range records {
		id, rest, _ := strings.Cut(line, " ")
		found[gitops.OID(id)] = rest
	}
	before := g.Manifest.Outer.Before
	for i, c := range lines {
		tree, rest, _ := strings.Cut(found[c.Outer], "\t")
		parents, subject, _ := strings.Cut(rest, "\t")
		if subject = g.values.Text(subject); len(secrets.Default().Find("", []byte(subject))) > 0 {
			subject = masked
		}
		lines[i].Tree, lines[i].Subject = gitops.OID(tree), gitops.Text(subject)
		if c.State == record.Landed {
			g.descent(c.Outer, before, parents)
		}
		before = c.Outer
	}
	return nil
}

// descent notes the parents of a landed commit, unless the commit before it is its only one.
func (g *gathering) descent(commit, before gitops.OID, parents string) {
	if parents == string(before) {
		return
	}
	if g.Manifest.Parents == nil {
		g.Manifest.Parents = map[gitops.OID][]gitops.OID{}
	}
	g.Manifest.Parents[commit] = []gitops.OID{} // a root commit has an entry, too
	for p := range strings.FieldsSeq(parents) {
		g.Manifest.Parents[commit] = append(g.Manifest.Parents[commit], gitops.OID(p))
	}
}

// noted checks the promise that each landed commit has a note.
func (g *gathering) noted(ctx context.Context) error {
	if len(g.landed) == 0 {
		return nil
	}
	ids, err := g.Prisons.Repo.NotedIDs(ctx, promote.NotesRef)
	if err != nil {
		return err
	}
	noted := gitops.SetOf(ids...)
	for _, p := range g.landed {
		if !noted[p.Outer] {
			g.found(record.InvariantBroken, fmt.Sprintf("the landed commit %.12s has no note", p.Outer))
		}
	}
	return nil
}

// changes adds the changes of the landed commits. Those of waiting commits are left out: the gate may hold them for a secret.
func (g *gathering) changes(ctx context.Context) error {
	if len(g.landed) == 0 {
		g.absent[record.ChangesName] = "no commit landed"
		return nil
	}
	var names strings.Builder
	for _, p := range g.landed[:min(len(g.landed), maxCommits)] {
		fmt.Fprintln(&names, p.Outer)
	}
	text, about := []byte(nil), record.File{}
	var err error
	for _, content := range []string{"--binary", "--full-index"} {
		if text, err = g.patches(ctx, names.String(), content); !errors.Is(err, errLong) {
			break
		}
		about.Note = leftOut
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		g.absent[record.ChangesName] = fmt.Sprintf("git did not write them within %s; the commits have them", gitTime)
		return nil
	case errors.Is(err, errLong):
		g.absent[record.ChangesName] = fmt.Sprintf("more than %d MB; the commits have it", record.MaxFile>>20)
		return nil
	case err != nil:
		return err
	}
	if found := g.values.Find(text); len(found) > 0 {
		text = passed.Cover(nil, text, 0, found)
		masked := fmt.Sprintf("values of variables are masked at %s; the commits have them", words.Count(len(found), "place"))
		about.Note = strings.TrimPrefix(about.Note+"; "+masked, "; ")
	}
	g.put(record.ChangesName, text, about)
	return nil
}

// errLong means that changes have more bytes than a file of a record may have.
var errLong = errors.New("too many bytes")

// leftOut is the note of changes without binary files. One large binary file, which a rename writes twice, would otherwise keep the changes of
// all commits from the record.
var leftOut = fmt.Sprintf("the content of binary files is left out, because the changes have more than %d MB with it; the commits have it", record.MaxFile>>20)

// patches returns the changes of the commits names, one a line. content is --binary for the content of binary files, or
// --full-index, which writes only the ids of their blobs.
func (g *gathering) patches(ctx context.Context, names, content string) ([]byte, error) {
	var out bytes.Buffer
	// With statistics, git writes a line "---" after the message, as format-patch does. A message cannot pass for changes then: no
	// change can go on across this line and the empty line after the statistics.
	err := g.Prisons.Repo.Look(ctx, gitops.Call{Args: []string{"-c", "diff.suppressBlankEmpty=false", "log", "--no-walk=unsorted", "--stdin", "--no-notes", "--no-show-signature",
		"--no-color", "--no-ext-diff", "--no-textconv", "--format=email", "--patch-with-stat", "--full-index", content,
		"--diff-merges=first-parent", "--no-renames", "--src-prefix=a/", "--dst-prefix=b/", "--submodule=short", "-O/dev/null"},
		Stdin: strings.NewReader(names), Stdout: gitops.CapOutput(&out, record.MaxFile+1), For: gitTime})
	if out.Len() >= record.MaxFile || err != nil && !errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && out.Len() > record.MaxFile/2 {
		return nil, errLong
	}
	return out.Bytes(), err
}
