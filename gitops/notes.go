package gitops

import (
	"bytes"
	"context"
	"strings"
)

// noteLimit bounds the bytes that are read of a note, because everybody who can push can write it.
const noteLimit = 4 << 20

// Note returns the note of a commit in a notes ref, or empty if there is none.
func (g *Git) Note(ctx context.Context, ref string, commit OID) (string, error) {
	var out bytes.Buffer
	err := g.Look(ctx, Call{Args: []string{"notes", "--ref=" + ref, "show", string(commit)}, Stdout: &out, Limit: noteLimit})
	if Status(err) == 1 { // no note
		return "", nil
	}
	return out.String(), err
}

// SetNote replaces the note of a commit. who is the name and address of the author of the change.
func (g *Git) SetNote(ctx context.Context, ref, who string, commit OID, text string) error {
	name, mail, _ := strings.Cut(strings.TrimSuffix(who, ">"), " <")
	return g.Durable().With("GIT_AUTHOR_NAME="+name, "GIT_AUTHOR_EMAIL="+mail, "GIT_COMMITTER_NAME="+name, "GIT_COMMITTER_EMAIL="+mail).
		Change(ctx, Call{Args: []string{"notes", "--ref=" + ref, "add", "-f", "-F", "-", string(commit)}, Stdin: strings.NewReader(text)})
}
