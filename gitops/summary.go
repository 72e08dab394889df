package gitops

import (
	"context"
	"fmt"
	"strings"
)

// Summary is a commit or branch in a line, fit to be shown.
type Summary struct {
	Name    string // short
	Subject string
}

// Summaries lists at most a number of the commits in some revisions, newest first.
func (r *Repository) Summaries(ctx context.Context, most int, revisions ...string) ([]Summary, error) {
	args := append([]string{"log", "-z", "--no-show-signature", "--no-notes", fmt.Sprintf("--max-count=%d", most), "--format=%h%x09%s"}, revisions...)
	return r.summaries(ctx, append(args, "--"))
}

// RefNames lists at most a number of the refs below one, such as "refs/heads", the last used first, by their short names. Those
// with names that cannot be shown as they are left out.
func (r *Repository) RefNames(ctx context.Context, most int, below string) ([]Summary, error) {
	return r.summaries(ctx, []string{"for-each-ref", "--sort=-committerdate", fmt.Sprintf("--count=%d", most),
		"--format=%(refname:short)%09%(contents:subject)%00", below})
}

func (r *Repository) summaries(ctx context.Context, args []string) ([]Summary, error) {
	records, err := r.Records(ctx, Call{Args: args})
	var all []Summary
	for _, record := range records {
		name, subject, _ := strings.Cut(strings.TrimPrefix(record, "\n"), "\t")
		if name != "" && Escape(name) == name {
			all = append(all, Summary{name, Escape(subject)})
		}
	}
	return all, err
}
