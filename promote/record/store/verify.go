package store

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/record"
)

// Load reads the record of an entry, and notes what is wrong with its files and its commit. [Verify] checks the chain, too.
func Load(ctx context.Context, r *gitops.Repository, e Entry) (record.Run, error) {
	c, files, err := files(ctx, r, e)
	if err != nil {
		return record.Run{}, err
	}
	run, err := record.Open(files)
	run.Ref, run.Commit, run.Files = e.Ref, e.Commit, files
	if run.Faults = run.Verify(); err == nil {
		run.Faults = append(run.Faults, unlike(c, e, run.Manifest)...)
	}
	return run, err
}

// hashes returns an error if the content of an object does not have its name.
func (o object) hashes(format string) error {
	if o.err != nil {
		return o.err
	}
	if got := gitops.HashObject(format, o.kind, o.content); got != o.id {
		return fmt.Errorf("the content of the %s %.12s has the hash %.12s", o.kind, o.id, got)
	}
	return nil
}

// files reads the commit and the files of a record, and checks their hashes.
func files(ctx context.Context, r *gitops.Repository, e Entry) (c gitops.Commit, files map[string][]byte, err error) {
	top, err := read(ctx, r, []string{string(e.Commit), string(e.Commit) + "^{tree}"})
	if err != nil {
		return c, nil, err
	}
	if top[0].err == nil && (top[0].kind != "commit" || top[0].id != e.Commit) {
		return c, nil, fmt.Errorf("%s is not a commit", e.Ref)
	}
	for _, o := range top {
		if err := o.hashes(r.Format); err != nil {
			return c, nil, err
		}
	}
	if c, err = gitops.ParseCommit(top[0].content); err != nil {
		return c, nil, err
	}
	entries, err := gitops.ParseTree(top[1].content, len(e.Commit)/2)
	if err != nil || c.Tree != top[1].id {
		return c, nil, fmt.Errorf("the tree of %s cannot be read", e.Ref)
	}
	if len(entries) > len(record.Names()) {
		return c, nil, fmt.Errorf("%s has %d files, and a record has at most %d", e.Ref, len(entries), len(record.Names()))
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		if !slices.Contains(record.Names(), entry.Name) || entry.Mode != gitops.ModeFile {
			return c, nil, fmt.Errorf("%s has %q, which is not a file of a record", e.Ref, gitops.Text(entry.Name))
		}
		names[i] = string(entry.OID)
	}
	blobs, err := read(ctx, r, names)
	if err != nil {
		return c, nil, err
	}
	files = map[string][]byte{}
	for i, b := range blobs {
		if err := b.hashes(r.Format); err != nil {
			return c, nil, fmt.Errorf("%s: %w", entries[i].Name, err)
		}
		files[entries[i].Name] = b.content
	}
	return c, files, nil
}

// Verify returns what is wrong with a record, one sentence each: its objects, its files, its commit, and the chain of its
// session, as far as the repository has it. all are the records of the repository.
func Verify(ctx context.Context, r *gitops.Repository, e Entry, all []Entry) (faults []string) {
	run, err := Load(ctx, r, e)
	switch {
	case err != nil && len(run.Faults) == 0:
		return []string{err.Error()}
	case err != nil:
		return run.Faults
	}
	return append(run.Faults, chain(ctx, r, e.Session, all)...)
}

// unlike returns the differences between the commit of a record and its manifest.
func unlike(c gitops.Commit, e Entry, m record.Manifest) (faults []string) {
	if m.Session != e.Session || m.Run != e.Number {
		faults = append(faults, fmt.Sprintf("the ref is of run %s, and the manifest of run %s/%d", e.Name(), gitops.Text(m.Session), m.Run))
	}
	if !bytes.Equal(c.Message, m.Message()) {
		faults = append(faults, "the message of the commit does not follow from the manifest")
	}
	if len(c.Parents) > 0 {
		faults = append(faults, "the commit has parents")
	}
	who, _ := gitops.SplitIdent(c.Author)
	if c.Author != identOf(who, m) || c.Committer != c.Author {
		faults = append(faults, "the date of the commit is not the end of the run, or author and committer differ")
	}
	if (e.Number > 1) != (m.Previous != "") {
		faults = append(faults, "only the first run of a session has none before it")
	}
	return faults
}

// previousKey begins the line of a message that names the record before.
const previousKey = "Airlock-Previous: "

// chain returns the breaks in the chain of a session. That the oldest record here names one before it is not a break, because older records may
// have been removed.
func chain(ctx context.Context, r *gitops.Repository, session string, all []Entry) (faults []string) {
	var names []string
	var runs []Entry
	for _, e := range all {
		if e.Session == session {
			runs, names = append(runs, e), append(names, string(e.Commit))
		}
	}
	commits, err := read(ctx, r, names)
	if err != nil {
		return []string{err.Error()}
	}
	for i, e := range runs {
		if i > 0 && runs[i-1].Number != e.Number-1 {
			faults = append(faults, fmt.Sprintf("the chain lacks the runs between %d and %d", runs[i-1].Number, e.Number))
			continue
		}
		if err := commits[i].hashes(r.Format); err != nil {
			faults = append(faults, err.Error())
			continue
		}
		if i > 0 && previous(commits[i].content) != runs[i-1].Commit {
			faults = append(faults, fmt.Sprintf("run %d names another commit than that of run %d as the one before it", e.Number, runs[i-1].Number))
		}
	}
	return faults
}

// previous returns the commit that a record's commit names as the one before it.
func previous(commit []byte) gitops.OID {
	_, message, _ := strings.Cut(string(commit), "\n\n")
	for line := range strings.Lines(message) {
		if name, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), previousKey); ok {
			return gitops.OID(name)
		}
	}
	return ""
}
