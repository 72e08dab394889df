package policy

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// keyPlaceholder is the rule "phantom". It finds placeholders, the texts that programs inside have in place of keys. A placeholder is worth
// nothing elsewhere, but a program that writes it into a file might write a key into a file as well.
type keyPlaceholder struct{ placeholders []string }

func (p keyPlaceholder) change(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	if len(p.placeholders) == 0 || c.New.Mode == 0 {
		return nil
	}
	if p.in([]byte(c.Path)) {
		r.at(c.Path, "the name has a placeholder for a key")
	}
	f, err := in.read(ctx, c)
	if err != nil {
		return err
	}
	if f.binary && p.in(f.head) {
		r.at(c.Path, "has a placeholder for a key")
	}
	for _, added := range f.runs {
		if p.in(added.text) {
			r.at(c.Path, "has a placeholder for a key in line %d or after it", added.line)
			return nil
		}
	}
	in.unsearched(f, r)
	return nil
}

func (p keyPlaceholder) commit(_ context.Context, in *inspection, r *report) error {
	if p.in(in.Message) {
		r.at("", "the message has a placeholder for a key")
	}
	return nil
}

func (p keyPlaceholder) in(text []byte) bool {
	return slices.ContainsFunc(p.placeholders, func(placeholder string) bool { return placeholder != "" && bytes.Contains(text, []byte(placeholder)) })
}

// blanked returns a text with dots in the place of the placeholders. Lines and offsets stay.
func blanked(text []byte, placeholders []string) []byte {
	for _, placeholder := range placeholders {
		if placeholder != "" && bytes.Contains(text, []byte(placeholder)) {
			text = bytes.ReplaceAll(text, []byte(placeholder), []byte(strings.Repeat(".", len(placeholder))))
		}
	}
	return text
}

// Fetched is the id of the rule about data that the prison fetched before a commit.
const Fetched = "fetched"

// fetched finds commits before which the prison got data from a host that no rule of the network names.
func fetched(_ context.Context, in *inspection, r *report) error {
	for _, what := range in.Fetched {
		r.at("", "%s", what)
	}
	return nil
}
