package policy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy/attribute"
	"github.com/git-airlock/git-airlock/promote/policy/filekind"
	"github.com/git-airlock/git-airlock/promote/policy/pathname"
)

// The attributes working-tree-encoding and ident make git write other bytes to the disk than the blob has. Rules read
// the blob. Git itself, an editor or a package manager reads the disk.

// converted returns the check for files that a rule reads, or that it finds by name, and that git converts. A commit can
// change the file, or the attributes of a file that has been there for long. reads must be cheap.
func converted(reads func(path string) bool) func(context.Context, *inspection, *report) error {
	return func(ctx context.Context, in *inspection, r *report) error {
		changed := map[string]bool{}
		for _, c := range in.Changes {
			if c.New.Regular() && reads(c.Path) {
				changed[c.Path] = true
			}
		}
		paths := maps.Clone(changed)
		dirs, err := in.attributed(ctx)
		if err == nil && len(dirs) > 0 {
			err = in.below(ctx, dirs, "", in.Tree, func(path string) {
				if reads(path) {
					paths[path] = true
				}
			})
		}
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			why := ""
			for _, folded := range []bool{false, true} { // core.ignoreCase
				now, _, errNow := in.conversion(ctx, in.tree, path, folded)
				before, doubtful, errBefore := "", true, error(nil)
				if now != "" && !changed[path] {
					before, doubtful, errBefore = in.conversion(ctx, in.parent, path, folded)
				}
				if err = errors.Join(err, errNow, errBefore); err != nil {
					return err
				}
				if now != before || doubtful {
					why = cmp.Or(why, now)
				}
			}
			if why != "" {
				r.at(path, "its bytes on the disk are not those of the commit, because of the attribute %s", why)
			}
		}
		return err
	}
}

// attributed returns the folders of changed attribute files, if they or a macro may set an attribute that converts.
func (in *inspection) attributed(ctx context.Context) (dirs []string, err error) {
	if in.dirs != nil {
		return *in.dirs, nil
	}
	may := attributeFile{lines: in.userLines()}.mayConvert()
	for _, c := range in.Changes {
		if !pathname.Means(pathname.Base(c.Path), ".gitattributes") {
			continue
		}
		dirs = append(dirs, pathname.Folder(c.Path))
		for _, e := range []gitops.Entry{c.Old, c.New} {
			f, err := in.attributeFile(ctx, e, true)
			if err != nil {
				return nil, err
			}
			may = may || f.mayConvert()
		}
	}
	for _, w := range []*walker{in.parent, in.tree} {
		if len(dirs) == 0 || may {
			break
		}
		top, err := in.attributeFiles(ctx, w, "", true) // can define macros
		if err != nil {
			return nil, err
		}
		may = slices.ContainsFunc(top, attributeFile.mayConvert)
	}
	if !may {
		dirs = nil
	}
	in.dirs = &dirs
	return dirs, nil
}

func mayConvert(state string) bool {
	name, _ := attribute.Effect{State: state}.Attribute()
	return name == encodingAttribute || name == "ident"
}

// below calls each for the regular files of a tree that are in one of some folders.
func (in *inspection) below(ctx context.Context, dirs []string, folder string, tree gitops.OID, each func(path string)) error {
	if tree == "" {
		return nil
	}
	entries, err := in.objects.Tree(ctx, tree)
	for _, e := range entries {
		path := pathname.Join(folder, e.Name)
		within := func(dir string) bool { return dir == "" || pathname.Below(path, dir) }
		above := func(dir string) bool { return pathname.Below(dir, path) }
		switch {
		case err != nil:
		case e.Folder() && (slices.ContainsFunc(dirs, within) || slices.ContainsFunc(dirs, above)):
			err = in.below(ctx, dirs, path, e.OID, each)
		case e.Regular() && slices.ContainsFunc(dirs, within):
			each(path)
		}
	}
	return err
}

// unconverted are the values of working-tree-encoding, without their first hyphen, with which git converts nothing.
var unconverted = []string{"", "unset", "unspecified", "utf8"}

// conversion returns the attributes because of which git writes other bytes of a file to the disk, or empty. If doubtful
// is set, some of them may have no effect.
func (in *inspection) conversion(ctx context.Context, w *walker, path string, folded bool) (why string, doubtful bool, err error) {
	here, err := w.at(ctx, pathname.Folder(path))
	if err != nil || here == nil || !here.entries[pathname.Base(path)].Regular() {
		return "", false, err
	}
	lines, doubtful, err := in.linesFor(ctx, w, path, folded)
	if err := errors.Join(err, in.meter.spend(matchCost(lines, path))); err != nil {
		return "", false, err
	}
	var names []string
	for _, found := range attribute.Resolve(lines, path, folded, doubtful) {
		if value := found[encodingAttribute]; !slices.Contains(unconverted, strings.ToLower(strings.Replace(value, "-", "", 1))) {
			names = append(names, encodingAttribute+"="+value)
		}
		if found["ident"] != "set" || slices.Contains(names, "ident") {
			continue
		}
		content, err := in.content(ctx, here.entries[pathname.Base(path)])
		if err != nil {
			return "", false, err
		}
		if bytes.Contains(content, []byte("$Id")) { // the expanded text can become a part of a character class
			names = append(names, "ident")
		}
	}
	return strings.Join(names, " and "), doubtful, nil
}

// linesFor returns the lines that git reads for a path, in ascending precedence. doubtful reports that git may read
// less, or one of its programs other lines than another.
func (in *inspection) linesFor(ctx context.Context, w *walker, path string, folded bool) (lines []attribute.Placed, doubtful bool, err error) {
	add := func(files []attributeFile, below string) {
		for _, f := range files {
			doubtful = doubtful || f.doubtful
			for _, l := range f.lines {
				lines = append(lines, attribute.Placed{Line: l, Below: below})
			}
		}
	}
	below, above := in.host.Attributes()
	add(parseFiles(below), "")
	pathname.Components(path, func(dir, _ string) bool {
		var files []attributeFile
		if files, err = in.attributeFiles(ctx, w, dir, folded); err == nil {
			add(files, strings.TrimPrefix(dir+"/", "/"))
		}
		return err == nil
	})
	add(parseFiles(above), "")
	return lines, doubtful, err
}

// attributeFile is the content of an attribute file.
type attributeFile struct {
	lines    []attribute.Line
	doubtful bool
}

func (f attributeFile) mayConvert() bool {
	return slices.ContainsFunc(f.lines, func(l attribute.Line) bool { return slices.ContainsFunc(l.States, mayConvert) })
}

// parsedFiles and parsedBytes bound the cached attribute files, and the content of each.
const parsedFiles, parsedBytes = 1000, 16 << 10

type attributeKey struct {
	id  gitops.OID
	top bool
}

// attributeFiles reads the attribute files of one folder. There are several only if case is ignored.
func (in *inspection) attributeFiles(ctx context.Context, w *walker, dir string, folded bool) (files []attributeFile, err error) {
	here, err := w.at(ctx, dir)
	if err != nil || here == nil {
		return nil, err
	}
	names := []string{".gitattributes"}
	if folded {
		names = here.alike(".gitattributes").names
	}
	for _, name := range names {
		f, err := in.attributeFile(ctx, here.entries[name], dir == "")
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

func (in *inspection) attributeFile(ctx context.Context, e gitops.Entry, top bool) (attributeFile, error) {
	key := attributeKey{e.OID, top}
	if f, known := in.parsed[key]; known {
		return f, nil
	}
	content, err := in.content(ctx, e)
	if err != nil {
		return attributeFile{}, err
	}
	f := attributeFile{lines: attribute.Parse(content, top)}
	f.doubtful = e.Mode == gitops.ModeLink || len(content) == textLimit || attribute.Misread(content) != "" || bytes.HasPrefix(content, filekind.ByteOrderMark)
	if len(content) < parsedBytes {
		in.parsed[key] = f
	}
	if len(in.parsed) > parsedFiles {
		clear(in.parsed)
	}
	return f, nil
}

func parseFiles(contents [][]byte) (files []attributeFile) {
	for _, content := range contents {
		files = append(files, attributeFile{lines: attribute.Parse(content, true)})
	}
	return files
}

// userLines returns the attribute lines that are not from the tree. These are git's own macro and the lines of the user's files.
func (in *inspection) userLines() []attribute.Line {
	lines := []attribute.Line{attribute.Binary}
	below, above := in.host.Attributes()
	for _, f := range parseFiles(slices.Concat(below, above)) {
		lines = append(lines, f.lines...)
	}
	return lines
}

// matchCost returns the work for matching the patterns of lines with a path.
func matchCost(lines []attribute.Placed, path string) (cost int64) {
	for _, l := range lines {
		cost += entryCost + int64(len(l.Pattern)*len(path)/2)
	}
	return cost
}
