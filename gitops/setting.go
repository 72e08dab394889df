package gitops

import (
	"context"
	"strings"
)

// Setting is one value of the configuration, and where git has it from.
type Setting struct {
	Scope string // system, global, local, worktree or command
	File  string // empty if it is from no file; relative to the top of the work tree
	Key   string
	Value string
}

// Settings reads the configuration with the files that it is from, in git's order. What this package imposes on its own commands
// is not in it.
func (r *Repository) Settings(ctx context.Context) ([]Setting, error) {
	own := *r.Git
	own.config = nil
	records, err := own.Records(ctx, Call{Args: []string{"config", "--list", "-z", "--includes", "--show-scope", "--show-origin"}})
	if err != nil {
		return nil, err
	}
	var settings []Setting
	for i := 0; i+2 < len(records); i += 3 {
		s := Setting{Scope: records[i]}
		s.File, _ = strings.CutPrefix(records[i+1], "file:")
		if s.File == records[i+1] {
			s.File = ""
		}
		var valued bool
		if s.Key, s.Value, valued = strings.Cut(records[i+2], "\n"); !valued {
			s.Value = "true" // a key without "=" is a true boolean, git-config(1)
		}
		settings = append(settings, s)
	}
	return settings, nil
}

// ConfigOf returns settings as a Config.
func ConfigOf(settings []Setting) Config {
	c := make(Config, len(settings))
	for _, s := range settings {
		c.add(s.Key + "\n" + s.Value)
	}
	return c
}
