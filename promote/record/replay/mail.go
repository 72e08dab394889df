package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/record"
)

// rebuild makes the commits that the repository does not have from their mails, each on the tree of its first parent.
func (w *workshop) rebuild(ctx context.Context, r Request, landed []record.Commit, all []original) error {
	var mails map[gitops.OID][]byte
	for i, c := range landed {
		if all[i].there {
			continue
		}
		if mails == nil {
			text, err := r.Run.Text(record.ChangesName)
			if err != nil {
				return errors.Join(&Lacking{Commit: c.Outer}, err)
			}
			mails = split(text, landed)
		}
		mail, ok := mails[c.Outer]
		if !ok {
			return fmt.Errorf("the commit %.12s is neither in this repository nor in %s", c.Outer, record.ChangesName)
		}
		before, err := w.parentTree(ctx, landed, all, i)
		if err != nil {
			return err
		}
		o, err := w.fromMail(ctx, mail, before, c.Tree)
		if err != nil {
			err = fmt.Errorf("make the commit %.12s: %w", c.Outer, err)
			if bytes.Contains(mail, []byte("\nBinary files ")) { // the record left their content out
				err = errors.Join(&Lacking{Commit: c.Outer}, err)
			}
			return err
		}
		o.Parents = all[i].Parents
		if all[i] = o; o.Tree != c.Tree {
			return nil // Make reports it, and nothing after it can be made
		}
	}
	return nil
}

// parentTree returns the tree of a commit's first parent.
func (w *workshop) parentTree(ctx context.Context, landed []record.Commit, all []original, i int) (gitops.OID, error) {
	if len(all[i].Parents) == 0 {
		return gitops.HashObject(w.repo.Format, "tree", nil), nil
	}
	first := all[i].Parents[0]
	for k := range i {
		if landed[k].Outer == first {
			return all[k].Tree, nil
		}
	}
	c, err := w.across.Commit(ctx, first)
	return c.Tree, err
}

// split returns the mails by their commits. A mail of a commit begins after that of the commit before, so that no message can pass for the
// mail of a later commit.
func split(text []byte, landed []record.Commit) map[gitops.OID][]byte {
	begins := map[string][]int{}
	at := 0
	for line := range bytes.Lines(text) {
		if id, ok := bytes.CutSuffix(line, []byte(" Mon Sep 17 00:00:00 2001\n")); ok && bytes.HasPrefix(id, []byte("From ")) {
			id = id[len("From "):]
			begins[string(id)] = append(begins[string(id)], at)
		}
		at += len(line)
	}
	mails := map[gitops.OID][]byte{}
	var last gitops.OID
	from := 0
	for _, c := range landed {
		all := begins[string(c.Outer)]
		i, _ := slices.BinarySearch(all, from)
		if i == len(all) {
			continue
		}
		if last != "" {
			mails[last] = text[from:all[i]]
		}
		last, from = c.Outer, all[i]
	}
	if last != "" {
		mails[last] = text[from:]
	}
	return mails
}

// mark is a line before a message.
const mark = ".\n"

// mailDate is the form of a mail's date.
const mailDate = "Mon, 2 Jan 2006 15:04:05 -0700"

// fromMail makes the commit of a mail. Its tree is the result of applying the mail's change to the tree before. want is the tree in the record.
func (w *workshop) fromMail(ctx context.Context, mail []byte, before, want gitops.OID) (o original, err error) {
	var about bytes.Buffer
	message := filepath.Join(w.dir, "message")
	// The mark is the first line, because git am takes "From:" at the beginning of a message for a header of the mail.
	head, rest, _ := bytes.Cut(mail, []byte("\n\n"))
	marked := slices.Concat(head, []byte("\n\n"+mark), rest)
	// -b keeps the brackets of a subject, except [PATCH].
	err = w.store.Change(ctx, gitops.Call{Args: []string{"mailinfo", "-b", "--encoding=UTF-8", message, os.DevNull}, Stdin: bytes.NewReader(marked), Stdout: &about})
	if err != nil {
		return o, err
	}
	body, err := os.ReadFile(message)
	if err != nil {
		return o, err
	}
	fields := map[string]string{}
	for line := range strings.Lines(about.String()) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		fields[key] = value
	}
	at, err := time.Parse(mailDate, fields["Date"])
	if err != nil {
		return o, err
	}
	o.Author = fmt.Sprintf("%s <%s> %d %s", fields["Author"], fields["Email"], at.Unix(), at.Format("-0700"))
	o.Committer = o.Author // a mail has no other date
	o.Message = []byte(fields["Subject"] + "\n")
	if text := strings.TrimSpace(strings.TrimPrefix(string(body), mark)); text != "" {
		o.Message = append(o.Message, "\n"+text+"\n"...)
	}
	for _, change := range changes(mail) {
		if o.Tree, err = w.applied(ctx, change, before); err == nil && o.Tree == want {
			break
		}
	}
	return o, err
}

// maxPlaces bounds the places of a mail at which its change may begin.
const maxPlaces = 4

// changes returns the parts of a mail that may be its change, the last one first. The change follows a line "---", statistics, and an empty
// line. A message can contain lines of the same form, so there can be several such parts, and the hash of the tree decides. The change comes
// after the message, and its own lines do not have that form, so it is the last part, unless the mail has been altered. If there is none, the
// commit changes nothing.
func changes(mail []byte) (found [][]byte) {
	for end := len(mail); len(found) < maxPlaces; {
		at := bytes.LastIndex(mail[:end], []byte("\n---\n"))
		if at < 0 {
			break
		}
		end = at + 1 // the line break can end another such line
		statistics := mail[at+len("\n---\n"):]
		for bytes.HasPrefix(statistics, []byte(" ")) {
			_, statistics, _ = bytes.Cut(statistics, []byte("\n"))
		}
		if bytes.HasPrefix(statistics, []byte("\ndiff --git ")) {
			found = append(found, statistics[1:])
		}
	}
	if found == nil {
		found = [][]byte{nil}
	}
	return found
}

// applied returns the tree that a change makes of another tree.
func (w *workshop) applied(ctx context.Context, change []byte, tree gitops.OID) (gitops.OID, error) {
	if len(change) == 0 {
		return tree, nil
	}
	git := w.store.With("GIT_INDEX_FILE=" + filepath.Join(w.dir, "index"))
	if err := git.Change(ctx, gitops.Call{Args: []string{"read-tree", string(tree)}, Stdout: io.Discard}); err != nil {
		return "", err
	}
	err := git.WithMemory(limits().Memory).Change(ctx, gitops.Call{Args: []string{"apply", "--cached", "--whitespace=nowarn"}, Stdin: bytes.NewReader(change), Stdout: io.Discard,
		For: limits().Time})
	if err != nil {
		return "", err
	}
	var made bytes.Buffer
	err = git.Change(ctx, gitops.Call{Args: []string{"write-tree"}, Stdout: &made})
	return gitops.OID(strings.TrimSpace(made.String())), err
}
