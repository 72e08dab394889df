package policy

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/maphash"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy/cost"
	"github.com/git-airlock/git-airlock/promote/policy/filekind"
	"github.com/git-airlock/git-airlock/promote/policy/hostgit"
	"github.com/git-airlock/git-airlock/promote/policy/pathname"
	"github.com/git-airlock/git-airlock/promote/policy/treelink"
)

const (
	// textLimit bounds the bytes that are read of one file.
	textLimit = 4 << 20
	// textBudget bounds the bytes that are searched in one commit. Otherwise an agent could stop landings with
	// minutes of work.
	textBudget = 32 << 20
)

// inspection is the check of one commit. It caches data that several rules need, but only the file of the current change.
type inspection struct {
	Commit
	objects Objects
	meter   *meter
	links   *treelink.Cache
	tree    *walker
	parent  *walker
	had     map[gitops.OID]bool // contents of the changed paths in the parent
	seen    map[gitops.OID]file // contents that were read, without their bytes
	left    int64               // the rest of textBudget
	steps   float64             // of git, for the changed patterns so far with the changed paths, counted once most is above its limit
	most    float64             // of these steps, if each path were as long as a path can be
	names   cost.Names          // in the changed attribute files so far
	file    file
	host    hostgit.Programs
	parsed  map[attributeKey]attributeFile // the attribute files that were read
	dirs    *[]string                      // the result of attributed
}

// file is the data of one change.
type file struct {
	change gitops.Change
	size   int64
	head   []byte // the first textLimit bytes
	old    []byte // the first textLimit bytes of the previous content
	runs   []run  // the added lines of a text
	binary bool   // the content is not searched
	dense  bool   // the content is hardly text, and only searched for secrets
	hides  bool   // the content is a text that git shows as binary because of a NUL, which the previous content was not
}

func newInspection(c Commit, objects Objects) *inspection {
	in := &inspection{Commit: c, objects: objects, left: textBudget, had: map[gitops.OID]bool{}, seen: map[gitops.OID]file{}, parsed: map[attributeKey]attributeFile{},
		tree: &walker{objects: objects, root: c.Tree}, parent: &walker{objects: objects, root: c.ParentTree}}
	for _, change := range c.Changes {
		if change.Old.OID != "" {
			in.had[change.Old.OID] = true
		}
	}
	return in
}

// content reads a file's first bytes, whether or not its content is new. It returns nil for other entries.
func (in *inspection) content(ctx context.Context, e gitops.Entry) ([]byte, error) {
	// Git obeys the target of a link named .gitattributes as if it were the text.
	if !e.Regular() && e.Mode != gitops.ModeLink {
		return nil, nil
	}
	head, _, err := in.objects.Blob(ctx, e.OID, textLimit)
	return head, err
}

// read reads the new content of a change, unless it was only moved. The result is valid until the next change is
// read.
func (in *inspection) read(ctx context.Context, c gitops.Change) (*file, error) {
	if in.file.change == c {
		return &in.file, nil
	}
	in.file = file{change: c}
	if !c.New.Regular() || in.had[c.New.OID] {
		return &in.file, nil
	}
	f := file{change: c}
	if known, again := in.seen[c.New.OID]; again && (known.binary && filekind.BinaryName(c.Path) || in.left < 0) {
		f.size, f.binary = known.size, known.binary
		in.file = f
		return &in.file, nil
	}
	var err error
	if f.head, f.size, err = in.objects.Blob(ctx, c.New.OID, textLimit); err != nil {
		return nil, err
	}
	f.binary = filekind.BinaryName(c.Path) && !filekind.Text(f.head)
	in.seen[c.New.OID] = file{size: f.size, binary: f.binary}
	if !f.binary {
		// The same text is checked again at another path, because the path can change the result.
		if err := in.compare(ctx, &f); err != nil {
			return nil, err
		}
	}
	in.file = f
	return &in.file, nil
}

// compare finds the added lines of a content that is searched.
func (in *inspection) compare(ctx context.Context, f *file) error {
	replaced := f.change.Old.Regular()
	if replaced {
		var err error
		if f.old, _, err = in.objects.Blob(ctx, f.change.Old.OID, textLimit); err != nil {
			return err
		}
	}
	if filekind.Binary(f.head) {
		wasText := len(f.old) > 0 && !filekind.Binary(f.old)
		f.dense = !filekind.Text(f.head) && !wasText && !filekind.TextName(f.change.Path)
		f.hides = !f.dense && (!replaced || wasText)
	}
	if filekind.BinaryName(f.change.Path) && !filekind.Text(f.old) {
		f.old = nil // no rule has searched it, so all lines count as added
	}
	f.head, f.old = filekind.WithoutNULs(f.head), filekind.WithoutNULs(f.old)
	f.runs = addedRuns(f.old, f.head)
	var added int64
	for _, r := range f.runs {
		added += int64(len(r.text))
	}
	if f.dense && in.left-added < textBudget/2 {
		f.binary, f.runs = true, nil // a commit with many such files must not be held because of them
		return nil
	}
	if in.left -= added; in.left < 0 {
		f.runs = nil
	}
	return nil
}

// unsearched reports the text of a change that [inspection.read] has not given to the rule. Each rule about text calls it, because each has its
// own action.
func (in *inspection) unsearched(f *file, r *report) {
	if f.size > textLimit && !f.binary && !f.dense {
		r.mention(f.change.Path, "only the first %d bytes were searched", textLimit)
	}
	if in.left < 0 {
		r.at(f.change.Path, "the commit adds more text than is searched (%d bytes)", textBudget)
	}
}

// rewritten reads an ignore or attribute file before and after the commit. If the new content is too long to be read,
// it reports that, and whole is false.
func (in *inspection) rewritten(ctx context.Context, c gitops.Change, r *report) (old, content []byte, whole bool, err error) {
	if old, err = in.content(ctx, c.Old); err != nil {
		return nil, nil, false, err
	}
	if content, err = in.content(ctx, c.New); err != nil {
		return nil, nil, false, err
	}
	if len(content) == textLimit {
		r.at(c.Path, "too long to be read as %s", pathname.Base(c.Path))
		return nil, nil, false, nil
	}
	return old, content, true, nil
}

// run is a sequence of consecutive lines that a commit added.
type run struct {
	line int // number of the first line, counted from 1
	at   int // offset of the first line
	text []byte
}

// addedRuns lists the lines of a file that its previous content does not contain. Lines that moved within the changed
// part, or whose ending changed between LF and CRLF, do not count as added. It needs eight bytes a line of that part,
// and does not search for the shortest difference.
func addedRuns(from, to []byte) []run {
	begin, end := inCommon(from, to)
	before, after := from[begin:len(from)-end], to[begin:len(to)-end]
	if len(after) == 0 {
		return nil
	}
	first := 1 + bytes.Count(to[:begin], []byte("\n"))
	if len(before) == 0 {
		return []run{{first, begin, after}}
	}
	seed := maphash.MakeSeed()
	had := make(map[uint64]struct{}, 1+bytes.Count(before, []byte("\n")))
	for line := range bytes.Lines(before) {
		had[maphash.Bytes(seed, trimEnd(line))] = struct{}{}
	}
	var runs []run
	number, offset, begun := first-1, 0, -1
	for line := range bytes.Lines(after) {
		number++
		if _, known := had[maphash.Bytes(seed, trimEnd(line))]; known {
			begun = -1
		} else {
			if begun < 0 {
				begun = offset
				runs = append(runs, run{line: number, at: begin + begun})
			}
			runs[len(runs)-1].text = after[begun : offset+len(line)]
		}
		offset += len(line)
	}
	return runs
}

// word is the number of bytes that are compared at once.
const word = 8

// inCommon returns the number of bytes that two contents have in common at the beginning and at the end, in whole
// lines.
func inCommon(from, to []byte) (begin, end int) {
	shorter := min(len(from), len(to))
	for begin+word <= shorter && binary.LittleEndian.Uint64(from[begin:]) == binary.LittleEndian.Uint64(to[begin:]) {
		begin += word
	}
	for begin < shorter && from[begin] == to[begin] {
		begin++
	}
	begin = bytes.LastIndexByte(to[:begin], '\n') + 1
	for end+word <= shorter-begin && binary.LittleEndian.Uint64(from[len(from)-end-word:]) == binary.LittleEndian.Uint64(to[len(to)-end-word:]) {
		end += word
	}
	for end < shorter-begin && from[len(from)-1-end] == to[len(to)-1-end] {
		end++
	}
	tail := to[len(to)-end:]
	// The common part begins with a whole line only after a line break.
	if i := bytes.IndexByte(tail, '\n'); i >= 0 {
		return begin, len(tail) - i - 1
	}
	return begin, 0
}

func trimEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}
