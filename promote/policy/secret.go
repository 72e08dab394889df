package policy

import (
	"context"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy/secrets"
)

// secret looks for keys and tokens in what a commit adds. What is known by its own form holds; what only
// stands beside a word like "password" is right too seldom for that, and is flagged.
type secret struct{}

func (secret) describe() Description {
	return documented("secret", Hold, "a private key or token in an added line or the message; what only looks like a password is flagged")
}

func (secret) change(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	f, err := in.read(ctx, c)
	if err != nil || f.binary {
		return err
	}
	for _, added := range f.runs {
		for _, m := range secrets.Default().Find(c.Path, added.text) {
			reportSecret(r, c.Path, added.line+m.Line-1, m)
		}
	}
	if f.cut() {
		r.mention(c.Path, "only the first %d bytes were searched", textLimit)
	}
	if in.left < 0 {
		r.at(c.Path, "the commit adds more text than is searched (%d bytes)", textBudget)
	}
	return nil
}

func (secret) commit(_ context.Context, in *inspection, r *report) error {
	for _, m := range secrets.Default().Find("", in.Message) {
		reportSecret(r, "", m.Line, m)
	}
	return nil
}

func reportSecret(r *report, path string, line int, m secrets.Match) {
	tell, where := r.at, "line %d: %s"
	if m.Guess {
		tell = r.mention
	}
	if path == "" {
		where = "message, line %d: %s"
	}
	if m.Encoded {
		where += " in Base64"
	}
	tell(path, where, line, m.Rule)
}
