package quarantine

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/busy"
)

const (
	// mostByLines bounds the files that one call of [Bridge.MergeTheirs] merges line by line, each with a git process.
	mostByLines = 1000
	// byLinesSize bounds the bytes of such a file.
	byLinesSize = 8 << 20
)

// MergeTheirs merges trees as [Bridge.Merge] does. Where both sides change the same lines, it takes those of Theirs, as git merge -X theirs does.
// If a conflict is not one of lines, it takes the file of Theirs, or none if Theirs has none. byLines is false if it took a whole file that both
// sides have changed: a binary or large one, one after the first mostByLines, or one for which git had no time. inspector must be one of the bridge.
func (b *Bridge) MergeTheirs(ctx context.Context, inspector *Inspector, m Merge) (tree gitops.OID, byLines bool, err error) {
	tree, conflicts, err := b.mergeByGit(ctx, m)
	if err != nil || len(conflicts) == 0 {
		return tree, true, err
	}
	o := &Overlay{objects: inspector, dir: b.dir, format: b.outer.Format, files: &layer{}}
	byLines = true
	for i, c := range conflicts {
		files := regular(c.stages)
		entry, merged := c.stages[2], false
		if files && i < mostByLines && b.Time.Left() {
			if entry, merged, err = b.mergeFile(ctx, inspector, c.stages); err != nil {
				return "", false, err
			}
		}
		byLines = byLines && (merged || !files)
		if c.inTree != c.path { // the other side may have a folder at the path
			o.files.put(strings.Split(c.inTree, "/"), gitops.Entry{})
		}
		if c.inTree == c.path || entry.Present() {
			o.files.put(strings.Split(c.path, "/"), entry)
		}
	}
	tree, err = o.Apply(ctx, tree)
	return tree, byLines, err
}

// regular reports whether the base and both sides have a file, and no link or submodule.
func regular(stages [3]gitops.Entry) bool {
	for _, e := range stages {
		if e.Mode != gitops.ModeFile && e.Mode != gitops.ModeExecutable {
			return false
		}
	}
	return true
}

// mergeFile merges a file line by line. If this is not possible, merged is false, and the entry is the one of theirs.
func (b *Bridge) mergeFile(ctx context.Context, inspector *Inspector, stages [3]gitops.Entry) (e gitops.Entry, merged bool, err error) {
	base, ours, theirs := stages[0], stages[1], stages[2]
	dir, err := os.MkdirTemp(b.dir, "file-")
	if err != nil {
		return theirs, false, err
	}
	defer os.RemoveAll(dir)
	args := []string{"merge-file", "--stdout", "--quiet", "--theirs"}
	for i, side := range []gitops.Entry{ours, base, theirs} { // the order of git merge-file
		content, size, err := inspector.Blob(ctx, side.OID, byLinesSize)
		if err != nil || size > byLinesSize {
			return theirs, false, err
		}
		args = append(args, filepath.Join(dir, string('a'+rune(i))))
		if err = os.WriteFile(args[len(args)-1], content, 0o600); err != nil {
			return theirs, false, err
		}
	}
	var out bytes.Buffer
	err = b.inTime("lines", Merge{Base: base.OID, Ours: ours.OID, Theirs: theirs.OID}, func(t *busy.Meter) error {
		return b.WithMemory(b.Memory).Metered(t).Look(ctx, gitops.Call{Args: args, Stdout: &out})
	})
	if gitops.Status(err) > 0 || gitops.Crashed(err) {
		return theirs, false, nil // a binary file, or one that git cannot merge
	}
	if err != nil {
		return theirs, false, err
	}
	if e = theirs; base.Mode == theirs.Mode {
		e.Mode = ours.Mode
	}
	e.OID = gitops.HashObject(b.outer.Format, "blob", out.Bytes())
	return e, true, b.writeLoose(e.OID, "blob", out.Bytes())
}
