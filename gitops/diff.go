package gitops

import (
	"context"
	"fmt"
	"strings"
)

// Entry is one side of a changed path; the zero Entry is "not there".
type Entry struct {
	Mode Mode
	OID  OID
}

// Present reports whether there is something at the path.
func (e Entry) Present() bool { return e.Mode != 0 }

// Gitlink reports whether the entry is a submodule.
func (e Entry) Gitlink() bool { return e.Mode == ModeGitlink }

// Change is one path that differs between two trees.
type Change struct {
	Path     string
	Old, New Entry
}

// Diff lists the paths in which two trees differ, renames as a removal and an addition, submodules whatever
// a .gitmodules file says of hiding them.
func (g *Git) Diff(ctx context.Context, old, new OID) ([]Change, error) {
	records, err := g.Records(ctx, Call{Args: []string{"diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev",
		"--ignore-submodules=none", string(old), string(new)}})
	if err != nil {
		return nil, err
	}
	changes := make([]Change, 0, len(records)/2)
	for i := 0; i+1 < len(records); i += 2 {
		f := strings.Fields(strings.TrimPrefix(records[i], ":"))
		if len(f) != 5 {
			return nil, fmt.Errorf("diff-tree answered %q", Escape(records[i]))
		}
		before, err := entry(f[0], f[2])
		if err != nil {
			return nil, err
		}
		after, err := entry(f[1], f[3])
		if err != nil {
			return nil, err
		}
		changes = append(changes, Change{Path: records[i+1], Old: before, New: after})
	}
	return changes, nil
}

// entry is what git prints of one.
func entry(mode, id string) (Entry, error) {
	if mode == "000000" {
		return Entry{}, nil
	}
	m, ok := parseMode(mode)
	if !ok {
		return Entry{}, fmt.Errorf("git printed %q as a mode", Escape(mode))
	}
	return Entry{m, OID(id)}, nil
}
