// Package store keeps the records of runs in a repository, and reads and verifies them.
//
// All functions work in any repository that has the refs of records, even if it never had an airlock. Whoever can push to a repository can write
// such refs, so the size of everything that is read is bounded.
package store

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/killpoint"
	"github.com/git-airlock/git-airlock/gitops/packing"
	"github.com/git-airlock/git-airlock/promote/record"
)

// Place is where a record is stored, and how.
type Place struct {
	Repo    *gitops.Repository
	Sharing gitops.Sharing // of Repo
	Mark    string         // a text that only this airlock uses, see [Place.Release]
	Who     string         // the author, without a date
	Ahead   Ahead          // files that were compressed before the record was complete
}

func (p Place) kept() packing.KeptPacks {
	return packing.KeptPacks{Repo: p.Repo, Sharing: p.Sharing, Mark: p.Mark}
}

// Put stores a record as a commit without parents, and creates its ref.
func (p Place) Put(ctx context.Context, run record.Run) (gitops.OID, error) {
	objects, names, err := p.objectsOf(run)
	if err != nil {
		return "", err
	}
	killpoint.Reach("before-objects")
	if err := p.kept().Store(objects, names); err != nil {
		return "", fmt.Errorf("store the record: %w", err)
	}
	killpoint.Reach("before-ref")
	m, commit := run.Manifest, names[len(names)-1]
	err = p.Repo.UpdateRefs(ctx, fmt.Sprintf("airlock: run %d", m.Run), gitops.RefUpdate{Ref: record.Ref(m.Session, m.Run), New: commit})
	killpoint.Reach("before-release")
	PackRefs(ctx, p.Repo)
	return commit, errors.Join(err, p.Release())
}

// Release ends the special protection of the objects of records: from now on, only their refs keep git gc from removing them. [Place.Put] calls
// Release itself, unless its process dies. No other process with the same mark may be inside Put.
func (p Place) Release() error { return p.kept().Release() }

// Ahead holds files of a record that is still being made. Their compression takes as long as making the report, and is done at the same time.
type Ahead struct{ files map[string]packing.Object }

// Add begins to compress a file.
func (a *Ahead) Add(name string, content []byte) {
	if a.files == nil {
		a.files = map[string]packing.Object{}
	}
	a.files[name] = packing.Object{Kind: "blob", Content: content}.Ahead()
}

// maxLoose is the number of records above which their refs are packed.
const maxLoose = 100

// PackRefs makes git pack all refs of a repository, as git gc does, if more than a hundred records have refs in files of their own.
// With 5,000 such files, "git log --decorate" reads ten times as long. Nothing depends on it, so it reports no error.
func PackRefs(ctx context.Context, r *gitops.Repository) {
	dir := filepath.Join(r.CommonDir, record.RefPrefix)
	sessions, _ := os.ReadDir(dir) // there is none with other kinds of storage
	loose := 0
	for _, s := range sessions {
		runs, _ := os.ReadDir(filepath.Join(dir, s.Name()))
		loose += len(runs)
	}
	if loose > maxLoose {
		_ = r.Change(ctx, gitops.Call{Args: []string{"pack-refs", "--all"}, Apart: true})
	}
}

// objectsOf returns the objects of a record with their names, the commit last.
func (p Place) objectsOf(run record.Run) (objects []packing.Object, names []gitops.OID, err error) {
	add := func(o packing.Object) gitops.OID {
		id := gitops.HashObject(p.Repo.Format, o.Kind, o.Content)
		objects, names = append(objects, o), append(names, id)
		return id
	}
	var entries []gitops.TreeEntry
	for _, name := range slices.Sorted(maps.Keys(run.Files)) {
		o, begun := p.Ahead.files[name]
		if !begun || !bytes.Equal(o.Content, run.Files[name]) {
			o = packing.Object{Kind: "blob", Content: run.Files[name]}
		}
		id := add(o)
		entries = append(entries, gitops.TreeEntry{Name: name, Entry: gitops.Entry{Mode: gitops.ModeFile, OID: id}})
	}
	tree, err := gitops.TreeBytes(entries)
	if err != nil {
		return nil, nil, err
	}
	ident := identOf(p.Who, run.Manifest)
	c := gitops.Commit{Tree: add(packing.Object{Kind: "tree", Content: tree}), Author: ident, Committer: ident, Message: run.Manifest.Message()}
	add(packing.Object{Kind: "commit", Content: c.Bytes()})
	return objects, names, nil
}

// identOf returns an author line. The time is the end of the run.
func identOf(who string, m record.Manifest) string {
	return fmt.Sprintf("%s %d +0000", who, m.Ended.Unix())
}

// Entry is a record that a ref names.
type Entry struct {
	Ref     string
	Session string
	Number  int
	Commit  gitops.OID
	// Manifest is empty in the result of [Refs], and if Err is not nil.
	Manifest record.Manifest
	Err      error    // why the manifest cannot be read
	Faults   []string // the differences between the manifest and the commit, in the result of [List]
}

// Name returns the name of the run that commands accept in every repository.
func (e Entry) Name() string { return fmt.Sprintf("%s/%d", e.Session, e.Number) }

// Refs returns the records of a repository, ordered by session and number, without their manifests.
func Refs(ctx context.Context, r *gitops.Repository) ([]Entry, error) {
	refs, err := r.Refs(ctx, strings.TrimSuffix(record.RefPrefix, "/"))
	var all []Entry
	for ref, commit := range refs {
		if session, n, ok := record.ParseRef(ref); ok {
			all = append(all, Entry{Ref: ref, Session: session, Number: n, Commit: commit})
		}
	}
	slices.SortFunc(all, func(a, b Entry) int { return cmp.Or(cmp.Compare(a.Session, b.Session), a.Number-b.Number) })
	return all, err
}

// List returns the records of a repository with their manifests, and compares these with the commits. It reads no other files.
func List(ctx context.Context, r *gitops.Repository) ([]Entry, error) {
	all, err := Refs(ctx, r)
	if err == nil {
		fill(ctx, r, all)
	}
	return all, err
}

// fill reads the manifests of records.
func fill(ctx context.Context, r *gitops.Repository, all []Entry) {
	if len(all) == 0 {
		return
	}
	var names []string
	for _, e := range all {
		names = append(names, string(e.Commit)+":"+record.ManifestName, string(e.Commit))
	}
	found, err := read(ctx, r, names)
	if err != nil { // one of them is broken
		found = nil
		for _, name := range names {
			one, err := read(ctx, r, []string{name})
			if err != nil {
				one = []object{{err: err}}
			}
			found = append(found, one...)
		}
	}
	for i := range all {
		all[i].read(found[2*i], found[2*i+1])
	}
}

// Landed returns the newest records of a session by the commits that landed in their runs. A record that cannot be read has none.
func Landed(ctx context.Context, r *gitops.Repository, session string, newest int) (map[gitops.OID][]Entry, error) {
	all, err := Refs(ctx, r)
	all = slices.DeleteFunc(all, func(e Entry) bool { return e.Session != session })
	all = all[max(0, len(all)-newest):]
	fill(ctx, r, all)
	by := map[gitops.OID][]Entry{}
	for _, e := range all {
		if e.Err != nil || e.Manifest.Landed == 0 {
			continue
		}
		found, err := read(ctx, r, []string{string(e.Commit) + ":" + record.CommitsName})
		if err != nil || found[0].err != nil {
			continue
		}
		commits, _ := record.DecodeCommits(found[0].content)
		for _, c := range commits {
			if c.State == record.Landed {
				by[c.Outer] = append(by[c.Outer], e)
			}
		}
	}
	return by, err
}

// read takes the manifest and the commit of a record.
func (e *Entry) read(manifest, commit object) {
	if e.Err = cmp.Or(manifest.err, commit.err); e.Err != nil {
		return
	}
	if e.Manifest, e.Err = record.DecodeManifest(manifest.content); e.Err != nil {
		return
	}
	if c, err := gitops.ParseCommit(commit.content); err != nil {
		e.Faults = []string{err.Error()}
	} else {
		e.Faults = unlike(c, *e, e.Manifest)
	}
}

// object is an object as git read it.
type object struct {
	id      gitops.OID
	kind    string
	content []byte
	err     error // it is not there
}

var errMissing = errors.New("it is not in this repository")

// read returns the objects that names stand for.
func read(ctx context.Context, r *gitops.Repository, names []string) ([]object, error) {
	var out bytes.Buffer
	err := r.Look(ctx, gitops.Call{Args: []string{"cat-file", "--batch"}, Stdin: strings.NewReader(strings.Join(names, "\n") + "\n"), Stdout: &out,
		Limit: record.MaxTotal})
	if err != nil {
		return nil, err
	}
	in := bufio.NewReader(&out)
	objects := make([]object, len(names))
	for i, name := range names {
		if objects[i], err = next(in); err != nil {
			return nil, fmt.Errorf("read %s: %w", gitops.Text(name), err)
		}
		if objects[i].err != nil {
			objects[i].err = fmt.Errorf("read %s: %w", gitops.Text(name), objects[i].err)
		}
	}
	return objects, nil
}

// next reads an answer of git cat-file --batch.
func next(in *bufio.Reader) (o object, err error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return o, io.ErrUnexpectedEOF
	}
	fields := strings.Fields(line)
	if len(fields) > 0 && fields[len(fields)-1] == "missing" {
		o.err = errMissing
		return o, nil
	}
	if len(fields) != 3 {
		return o, fmt.Errorf("git answered %q", gitops.Text(strings.TrimSpace(line)))
	}
	size, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil || size > record.MaxTotal {
		return o, fmt.Errorf("git answered %q", gitops.Text(strings.TrimSpace(line)))
	}
	o.id, o.kind, o.content = gitops.OID(fields[0]), fields[1], make([]byte, size)
	if _, err = io.ReadFull(in, o.content); err == nil {
		_, err = in.ReadByte()
	}
	return o, err
}
