package gitops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Note is a text to be attached to a commit; an empty one removes the commit's note.
type Note struct {
	Commit OID
	Text   string
}

// DraftNotes makes the commit that adds notes to the notes ref, or removes them, in one go, whatever their number, and
// returns it with the value of the notes ref it was built on; nothing shows until the caller moves the ref.
// draft is a ref that holds the new commit meanwhile; git fast-import needs one.
func (r *Repository) DraftNotes(ctx context.Context, ref, draft, who string, notes []Note) (old, drafted OID, err error) {
	if old, err = r.Ref(ctx, ref); err != nil {
		return "", "", err
	}
	const message = "Notes added by 'git airlock'\n"
	var in bytes.Buffer
	fmt.Fprintf(&in, "commit %s\ncommitter %s %d +0000\ndata %d\n%s", draft, who, time.Now().Unix(), len(message), message)
	if old != "" {
		fmt.Fprintf(&in, "from %s\n", old)
	}
	for _, n := range notes {
		if n.Text == "" {
			fmt.Fprintf(&in, "N %s %s\n", n.Commit.zero(), n.Commit)
			continue
		}
		fmt.Fprintf(&in, "N inline %s\ndata %d\n%s\n", n.Commit, len(n.Text), n.Text)
	}
	in.WriteString("done\n")
	script, err := unnamedFile(in.Bytes())
	if err != nil {
		return "", "", fmt.Errorf("write notes: %w", err)
	}
	defer script.Close()
	if err := r.durable().Change(ctx, Call{Args: []string{"fast-import", "--quiet", "--force", "--done"}, Stdin: script, Apart: true}); err != nil {
		return "", "", fmt.Errorf("write notes: %w", err)
	}
	drafted, err = r.Ref(ctx, draft)
	return old, drafted, err
}

// unnamedFile is a file to be read that nobody else can find. git fast-import, cut off in the middle of its input, would
// leave half a pack in the user's store.
func unnamedFile(content []byte) (*os.File, error) {
	f, err := os.CreateTemp("", "")
	if err != nil {
		return nil, err
	}
	_, err = f.Write(content)
	_, seekErr := f.Seek(0, io.SeekStart)
	if err := errors.Join(os.Remove(f.Name()), err, seekErr); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
