package policy

import (
	"context"

	"github.com/git-airlock/git-airlock/gitops"
)

const (
	// textLimit bounds what is read of one file.
	textLimit = 4 << 20
	// textBudget bounds what is searched in one commit: minutes of work would be a way to stop landings.
	textBudget = 32 << 20
)

// inspection is one look at a commit. It keeps what several rules ask for, and of files only the one that is
// being looked at.
type inspection struct {
	Commit
	objects Objects
	meter   *meter
	tree    *walker
	parent  *walker
	had     map[gitops.OID]bool // contents that the parent has at a path that changed
	seen    map[gitops.OID]file // contents that were read, without their bytes
	left    int64               // of textBudget
	file    file
}

// file is what was read for one change.
type file struct {
	change gitops.Change
	size   int64
	head   []byte // the first textLimit bytes
	old    []byte // those of the former content
	runs   []run  // what was added to a text
	binary bool   // it is no text
}

// cut reports whether the file is longer than what is read of one.
func (f *file) cut() bool { return f.size > textLimit }

func newInspection(c Commit, objects Objects) *inspection {
	in := &inspection{Commit: c, objects: objects, left: textBudget, had: map[gitops.OID]bool{}, seen: map[gitops.OID]file{},
		tree: newWalker(objects, c.Tree), parent: newWalker(objects, c.ParentTree)}
	for _, change := range c.Changes {
		if change.Old.OID != "" {
			in.had[change.Old.OID] = true
		}
	}
	return in
}

// content reads a file's first bytes, whether or not its content is new; nil for what is no file.
func (in *inspection) content(ctx context.Context, e gitops.Entry) ([]byte, error) {
	// Of a link named .gitattributes git obeys the target as if it were the text.
	if !e.Regular() && e.Mode != gitops.ModeLink {
		return nil, nil
	}
	head, _, err := in.objects.Blob(ctx, e.OID, textLimit)
	return head, err
}

// read reads what a change brings, unless it was only moved. The file is good until the next change is read.
func (in *inspection) read(ctx context.Context, c gitops.Change) (*file, error) {
	if in.file.change == c {
		return &in.file, nil
	}
	in.file = file{change: c}
	if !c.New.Regular() || in.had[c.New.OID] {
		return &in.file, nil
	}
	f := file{change: c}
	if known, again := in.seen[c.New.OID]; again && (known.binary || in.left < 0) {
		f.size, f.binary = known.size, known.binary
		in.file = f
		return &in.file, nil
	}
	var err error
	if f.head, f.size, err = in.objects.Blob(ctx, c.New.OID, textLimit); err != nil {
		return nil, err
	}
	f.binary = isBinary(f.head)
	in.seen[c.New.OID] = file{size: f.size, binary: f.binary}
	if !f.binary {
		// The same text at another path is looked at again: what it is there may be another matter.
		if err := in.compare(ctx, &f); err != nil {
			return nil, err
		}
	}
	in.file = f
	return &in.file, nil
}

// compare finds what was added to a text.
func (in *inspection) compare(ctx context.Context, f *file) error {
	if f.change.Old.Regular() {
		var err error
		if f.old, _, err = in.objects.Blob(ctx, f.change.Old.OID, textLimit); err != nil {
			return err
		}
	}
	if isBinary(f.old) {
		f.old = nil // nobody has looked at it
	}
	f.runs = addedRuns(f.old, f.head)
	for _, r := range f.runs {
		in.left -= int64(len(r.text))
	}
	if in.left < 0 {
		f.runs = nil
	}
	return nil
}

// rewritten reads a file of ignore rules or attributes as it was and as it is. What a new one says that is too long to be
// read is not known: that is reported, and whole is false.
func (in *inspection) rewritten(ctx context.Context, c gitops.Change, r *report) (old, content []byte, whole bool, err error) {
	if old, err = in.content(ctx, c.Old); err != nil {
		return nil, nil, false, err
	}
	if content, err = in.content(ctx, c.New); err != nil {
		return nil, nil, false, err
	}
	if len(content) == textLimit {
		r.at(c.Path, "too long to be read as %s", base(c.Path))
		return nil, nil, false, nil
	}
	return old, content, true, nil
}
