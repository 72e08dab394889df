package policy

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/ignore"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/promote/policy/attribute"
	"github.com/git-airlock/git-airlock/promote/policy/cost"
	"github.com/git-airlock/git-airlock/promote/policy/filekind"
	"github.com/git-airlock/git-airlock/promote/policy/pathname"
)

// Ignores reads the user's ignore rules. *[ignore.Rules] implements it.
type Ignores interface {
	// Ignored returns the paths that a rule covers and that the user does not track, each with its rule.
	Ignored(ctx context.Context, paths []string) (map[string]string, error)
	Close() error
}

// IgnoredPath is the id of the rule about new files in ignored folders.
const IgnoredPath = "ignored-path"

// ignoredPath finds new files in folders that the user ignores: environments, installed packages, build results.
// Nobody commits there in good faith, the files there are not visible, and programs are started from there. A single
// ignored file in another folder is not reported: if the user has a file of that name, the landing collides with it.
type ignoredPath struct{ ignores Ignores }

func (p ignoredPath) commit(ctx context.Context, in *inspection, r *report) error {
	var added []gitops.Change
	for _, c := range in.Changes {
		if c.Old.Mode == 0 && c.New.Mode != 0 {
			added = append(added, c)
		}
	}
	if p.ignores == nil || len(added) == 0 {
		return nil
	}
	rules, err := p.below(ctx, added)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, c := range added {
		switch rule, covered := rules[c.Path]; {
		case err != nil: // an agent's file must not prevent a verdict
			r.at(c.Path, "git cannot say whether your ignore rules cover it: %v", err)
		case covered:
			r.at(c.Path, "you ignore it (%s)", rule)
		}
	}
	return nil
}

// anyFile is a name that only rules for whole folders cover.
const anyFile = "/0d41f7b6c2e95a38"

// below returns the paths in a folder that a rule covers as a whole, each with the rule. A link counts as a folder.
// Files that the user tracks are left out.
func (p ignoredPath) below(ctx context.Context, added []gitops.Change) (map[string]string, error) {
	var probes, inside []string
	asked := map[string]bool{}
	probe := func(dir string) {
		if dir != "." && !asked[dir] {
			asked[dir] = true
			probes = append(probes, dir+anyFile)
		}
	}
	for _, c := range added {
		probe(path.Dir(c.Path))
		if c.New.Mode == gitops.ModeLink {
			probe(c.Path)
		}
	}
	covered, err := p.ignores.Ignored(ctx, probes)
	if err != nil || len(covered) == 0 {
		return nil, err
	}
	rules := map[string]string{}
	for _, c := range added {
		if rule, ok := covered[c.Path+anyFile]; ok && c.New.Mode == gitops.ModeLink {
			rules[c.Path] = rule
		} else if _, ok := covered[path.Dir(c.Path)+anyFile]; ok {
			inside = append(inside, c.Path)
		}
	}
	untracked, err := p.ignores.Ignored(ctx, inside)
	maps.Copy(rules, untracked)
	return rules, err
}

var stepLimits = ignore.Limits{Bytes: float64(inner.DefaultLimits.Path), Component: float64(inner.DefaultLimits.Component), Slashes: float64(inner.DefaultLimits.Depth)}

// slowPattern finds ignore and attribute files that can keep git at work without end. A landing, git status and git add
// match all their patterns with each path.
func slowPattern(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	if !hasPatterns(c.Path) {
		return nil
	}
	old, content, whole, err := in.rewritten(ctx, c, r)
	if err = errors.Join(err, in.meter.spend(patternCost*int64(len(old)+len(content)))); err != nil || !whole {
		return err
	}
	attributes := pathname.Means(pathname.Base(c.Path), ".gitattributes")
	before, _ := patternSteps(old, attributes, stepLimits)
	after, line := patternSteps(content, attributes, stepLimits)
	if after > max(before, cost.StepLimit) {
		r.at(c.Path, "git can take too long to match its patterns with a path, most of the time for line %d: write fewer * and **/ in one pattern", line)
		return nil
	}
	if after <= before {
		return nil
	}
	folder := pathname.Folder(c.Path)
	below := cost.Below(in.Changes, folder)
	if in.most += after * float64(len(below)); in.most <= cost.UncountedSteps {
		return nil
	}
	here, err := in.pathSteps(folder, below, content, attributes)
	if in.steps += here; err == nil && here > 0 && in.steps > cost.TotalSteps {
		r.at(c.Path, "git can take too long to match its patterns with all paths of the commit, most of the time for line %d: write fewer * and **/ in one pattern", line)
	}
	return err
}

// pathSteps returns the steps for all patterns of a file in a folder and the changed paths below the folder. Paths of about the same size count
// as equal, so that the patterns are read a few times, and not for each path.
func (in *inspection) pathSteps(folder string, below []gitops.Change, content []byte, attributes bool) (steps float64, err error) {
	sizes := cost.Sizes(below, folder)
	if err = in.meter.spend(entryCost*int64(len(below)) + patternCost*int64(len(content)*len(sizes))); err != nil {
		return 0, err
	}
	for size, paths := range sizes {
		each, _ := patternSteps(content, attributes, size)
		steps += each * float64(paths)
	}
	return steps, nil
}

// gitResources finds attribute and .mailmap files with which git needs too much time or memory.
func gitResources(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	if pathname.Means(c.Path, ".mailmap") {
		old, content, whole, err := in.rewritten(ctx, c, r)
		if addresses := cost.Mapped(content); whole && addresses > max(cost.Mapped(old), cost.MappedLimit) {
			r.at(c.Path, "git needs seconds or minutes to sort its %d addresses, in each git log", addresses)
		}
		return err
	}
	if !pathname.Means(pathname.Base(c.Path), ".gitattributes") {
		return nil
	}
	a, err := in.attributeLines(ctx, c, r)
	long := func(s attribute.Effect) bool {
		name, value := s.Attribute()
		return !s.Reversed && name == cost.MarkerSize && cost.LongMarker(value)
	}
	through := a.macros.Leading(long)
	for _, l := range a.added() {
		if slices.ContainsFunc(l.States, func(state string) bool {
			return long(attribute.Effect{State: state}) || through[attribute.Effect{State: state}.Use()]
		}) {
			r.at(c.Path, "line %d makes git write conflict markers of more than %d characters, for which it can need all memory", l.Number, cost.MarkerLimit)
		}
	}
	if err != nil {
		return err
	}
	before, after := attribute.Names(a.before), attribute.Names(a.after)
	some := in.names.Add(before, after)
	folders := func(id gitops.OID) ([]gitops.TreeEntry, error) { return in.objects.Tree(ctx, id) }
	err = in.names.AddParent(in.ParentTree, folders, func(e gitops.Entry, top bool) (map[string]bool, error) {
		f, err := in.attributeFile(ctx, e, top)
		return attribute.Names(f.lines), err
	})
	if len(after) > max(len(before), cost.NameLimit) {
		r.at(c.Path, "git needs too much time or memory for its %d attributes", len(after))
	} else if some && in.names.TooMany() {
		r.at(c.Path, "git needs too much time for the attributes in this and other files, more than %d", cost.TotalNames)
	}
	return err
}

func takesResources(path string) bool {
	return pathname.Means(path, ".mailmap") || pathname.Means(pathname.Base(path), ".gitattributes")
}

func hasPatterns(path string) bool {
	name := pathname.Base(path)
	return pathname.Means(name, ".gitignore") || pathname.Means(name, ".gitattributes")
}

// patternSteps returns the steps for all patterns of an ignore or attribute file with a path within limits, and the line that needs most of them.
func patternSteps(content []byte, attributes bool, limits ignore.Limits) (steps float64, line int) {
	most := 0.0
	count := func(here float64, number int) {
		if steps += here; here > most {
			most, line = here, number
		}
	}
	if attributes {
		for _, l := range attribute.Parse(content, true) {
			count(ignore.AttributeSteps(l.Pattern, limits), l.Number)
		}
		return steps, line
	}
	number := 0
	for text := range bytes.Lines(bytes.TrimPrefix(content, filekind.ByteOrderMark)) {
		number++
		count(ignore.Steps(strings.TrimRight(string(text), "\r\n"), limits), number)
	}
	return steps, line
}
