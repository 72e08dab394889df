package gitops

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ErrRefMoved means that a ref did not have the expected old value, or is locked.
var ErrRefMoved = errors.New("a ref moved meanwhile")

// RetryMoved calls change until its error is not [ErrRefMoved], at most ten times, and longer apart each time. Other processes write notes, too.
func RetryMoved(ctx context.Context, change func() error) (err error) {
	for n := range 10 {
		if err = change(); !errors.Is(err, ErrRefMoved) || ctx.Err() != nil {
			break
		}
		time.Sleep(time.Duration(n) * 20 * time.Millisecond)
	}
	return err
}

// LockedError names the lock that prevents a change of refs. It is an [ErrRefMoved].
type LockedError struct {
	Lock string // path of the lock file
	err  error
}

// Error implements error. Git's own text has several lines.
func (e *LockedError) Error() string {
	return "another git command holds the lock of a ref; if none runs, it is left over from a crash"
}

// Unwrap returns git's error.
func (e *LockedError) Unwrap() error { return e.err }

// RefUpdate moves a ref from a known value to another. An empty Old means that the ref must not exist. An empty New deletes the ref.
type RefUpdate struct {
	Ref      string // full name; required
	Old, New OID
}

// line returns the update in the format of git-update-ref(1) with -z.
func (u RefUpdate) line(zero OID) string {
	switch {
	case u.New == "" && u.Old == "":
		return "verify " + u.Ref + "\x00" + string(zero) + "\x00"
	case u.New == "":
		return "delete " + u.Ref + "\x00" + string(u.Old) + "\x00"
	case u.Old == "":
		return "create " + u.Ref + "\x00" + string(u.New) + "\x00"
	}
	return "update " + u.Ref + "\x00" + string(u.New) + "\x00" + string(u.Old) + "\x00"
}

// Ref returns the value of a ref, empty if the ref does not exist.
func (r *Repository) Ref(ctx context.Context, ref string) (OID, error) {
	refs, err := r.Refs(ctx, ref)
	return refs[ref], err
}

// Refs returns the refs with the given full names or below the given prefixes ("refs/airlock/7f3a"). It reads refs
// that are files itself, and runs git for all others.
func (r *Repository) Refs(ctx context.Context, names ...string) (map[string]OID, error) {
	if refs, err := readRefs(r.CommonDir, names); err == nil {
		return refs, nil
	}
	return r.Git.Refs(ctx, names...)
}

// Refs returns the refs with the given full names or below the given prefixes, as git lists them.
func (g *Git) Refs(ctx context.Context, names ...string) (map[string]OID, error) {
	text, err := g.Output(ctx, append([]string{"for-each-ref", "--format=%(objectname) %(refname)", "--"}, names...)...)
	if err != nil {
		return nil, err
	}
	refs := map[string]OID{}
	for line := range strings.Lines(text) {
		id, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		refs[name] = OID(id)
	}
	return refs, nil
}

// errNotPlain means that git must read the refs: they are not files, or a file has a form that only git interprets.
var errNotPlain = errors.New("not a plain ref")

// maxPackedRefs is the largest file of packed refs that is read here. Git looks a few names up in a larger one faster.
const maxPackedRefs = 4 << 20

// readRefs reads refs from files as git does: files below refs first, then packed-refs for those that have no file. In
// this order, a concurrent git pack-refs, which removes a file after packing it, hides no ref.
func readRefs(dir string, names []string) (map[string]OID, error) {
	// Other kinds of storage have a file in this place (gitformat-reftable).
	if info, err := os.Lstat(filepath.Join(dir, "refs/heads")); err != nil || !info.IsDir() {
		return nil, errNotPlain
	}
	refs := map[string]OID{}
	for _, name := range names {
		if !plainName(name) {
			return nil, errNotPlain
		}
		if err := addLoose(refs, dir, name); err != nil {
			return nil, err
		}
	}
	return refs, addPacked(refs, filepath.Join(dir, "packed-refs"), names)
}

// plainName reports whether a name can be a ref's, and is shared by all worktrees.
func plainName(name string) bool {
	rest, ok := strings.CutPrefix(name, "refs/")
	if !ok || strings.ContainsAny(rest, "*?[\\:^~ \x7f") || strings.Contains(rest, "..") || strings.Contains(rest, "//") || strings.Contains(rest, "@{") {
		return false
	}
	own := strings.SplitN(rest, "/", 2)[0]
	return own != "worktree" && own != "bisect" && own != "rewritten"
}

// addLoose adds the refs that are files at or below a name.
func addLoose(refs map[string]OID, dir, name string) error {
	err := filepath.WalkDir(filepath.Join(dir, name), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir():
			return err
		case strings.HasSuffix(path, ".lock"):
			return nil
		}
		ref, err := filepath.Rel(dir, path)
		if err != nil || !d.Type().IsRegular() || !plainName(ref) || strings.HasPrefix(d.Name(), ".") {
			return errNotPlain
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		id, err := ParseOID(string(bytes.TrimSuffix(content, []byte("\n"))))
		if err != nil || id == id.Zero() {
			return errNotPlain
		}
		refs[ref] = id
		return nil
	})
	// A path below a file is the name of a ref that cannot exist now.
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return err
}

// addPacked adds the packed refs with the given names, or below them, that are not in refs.
func addPacked(refs map[string]OID, path string, names []string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Size() > maxPackedRefs:
		return errNotPlain
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(content) { // there can be thousands of records of runs: only a wanted line is copied
		id, name, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		if bytes.HasPrefix(id, []byte("#")) || bytes.HasPrefix(id, []byte("^")) || !below(name, names) {
			continue
		}
		ref := string(name)
		if refs[ref] != "" {
			continue
		}
		if refs[ref], err = ParseOID(string(id)); err != nil || !plainName(ref) {
			return errNotPlain
		}
	}
	return nil
}

// below reports whether a ref has one of the names, or is below one.
func below(ref []byte, names []string) bool {
	for _, name := range names {
		name = strings.TrimSuffix(name, "/")
		if len(ref) >= len(name) && string(ref[:len(name)]) == name && (len(ref) == len(name) || ref[len(name)] == '/') {
			return true
		}
	}
	return false
}

// UpdateRefs makes all updates in one transaction, or none of them.
func (g *Git) UpdateRefs(ctx context.Context, message string, updates ...RefUpdate) error {
	tx, err := g.PrepareRefs(ctx, message, updates)
	if err != nil {
		return err
	}
	return tx.Commit()
}

// FetchRefs fetches refs of a remote, each with a refspec, and nothing else. Its options keep git from deleting refs that the remote does not have
// (fetch.prune), from fetching tags, and from leaving out content that the filter of a partial clone excludes.
func (g *Git) FetchRefs(ctx context.Context, remote string, specs []string) error {
	args := []string{"fetch", "--quiet", "--no-prune", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--no-filter", "--stdin", remote}
	return g.Change(ctx, Call{Args: args, Stdin: strings.NewReader(strings.Join(specs, "\n") + "\n"), Stdout: io.Discard})
}

// Transaction is a prepared ref transaction: every ref in it, and HEAD where it points to one
// of them, is locked until commit or abort. If this process dies, git aborts it.
type Transaction struct {
	Cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *Stderr
}

// PrepareRefs begins a transaction and prepares it.
func (g *Git) PrepareRefs(ctx context.Context, message string, updates []RefUpdate) (*Transaction, error) {
	t, err := g.BeginRefs(ctx, message)
	if err != nil {
		return nil, err
	}
	return t, t.Prepare(updates)
}

// BeginRefs starts the git process of a transaction, which locks nothing before Prepare. Either Prepare or Abort must be called.
func (g *Git) BeginRefs(ctx context.Context, message string) (*Transaction, error) {
	if g.Dry {
		return nil, ErrDryRun
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t := &Transaction{stderr: &Stderr{}}
	// If the context is cancelled, git sees the end of its input and ends the transaction, instead of being killed
	// with the refs locked. A process group of its own also protects git from an interrupt at the terminal.
	args := []string{"update-ref", "--no-deref", "-z", "--stdin"}
	if message != "" { // git refuses an empty message
		args = append(args, "-m", message)
	}
	t.Cmd = g.Durable().command(context.WithoutCancel(ctx), Call{Args: args, Env: g.withoutHooks(ctx)})
	t.Cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	t.Cmd.Stderr = t.stderr
	var err error
	if t.in, err = t.Cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := t.Cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	t.out = bufio.NewReader(out)
	if err := t.Cmd.Start(); err != nil {
		return nil, fmt.Errorf("git update-ref: %w", err)
	}
	return t, nil
}

// Prepare locks the refs at their old values. An error that wraps [ErrRefMoved] means that a ref has another value, or is locked by
// another process. The transaction ends with any error.
func (t *Transaction) Prepare(updates []RefUpdate) error {
	var zero OID
	for _, u := range updates {
		if zero = cmp.Or(u.New, u.Old).Zero(); zero != "" {
			break
		}
	}
	if err := t.say("start\x00", "start: ok"); err != nil {
		return err
	}
	var lines strings.Builder
	for _, u := range updates {
		lines.WriteString(u.line(zero))
	}
	err := t.say(lines.String()+"prepare\x00", "prepare: ok")
	if err != nil && !NoRoom(err) { // without room, git could not create its own lock
		err = refused(err)
	}
	return err
}

// refused returns the error of a transaction that git did not prepare.
func refused(err error) error {
	moved := fmt.Errorf("%w: %w", ErrRefMoved, err)
	if failed, ok := errors.AsType[*Error](err); ok && lockInTheWay(failed) != "" {
		return &LockedError{lockInTheWay(failed), moved}
	}
	return moved
}

func (t *Transaction) say(words, answer string) error {
	if _, err := io.WriteString(t.in, words); err != nil {
		return t.end(err)
	}
	got, err := t.out.ReadString('\n')
	if err != nil || strings.TrimSpace(got) != answer {
		return t.end(fmt.Errorf("update-ref answered %q", got))
	}
	return nil
}

// end waits for git and returns its error message, or cause if there is none.
func (t *Transaction) end(cause error) error {
	t.in.Close()
	if exit, ok := errors.AsType[*exec.ExitError](t.Cmd.Wait()); ok && t.stderr.String() != "" {
		return &Error{Args: []string{"update-ref"}, Status: exit.ExitCode(), Lines: t.stderr.Lines()}
	}
	return cause
}

// Commit moves the refs.
func (t *Transaction) Commit() error {
	if err := t.say("commit\x00", "commit: ok"); err != nil {
		return err
	}
	return t.end(nil)
}

// Abort unlocks the refs and leaves their values unchanged.
func (t *Transaction) Abort() { _ = t.end(nil) }
