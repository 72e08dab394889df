package gitops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"time"
)

// Process is a program to be run inside a prison.
type Process struct {
	Argv, Env      []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Workspace drives git inside a prison, where the inner repository is all that git can see.
// What it answers was written by an agent: it is bounded and checked here.
type Workspace struct {
	// Dir is the path of the workspace inside.
	Dir string
	// Run runs a process inside to its end and returns its exit status.
	Run func(context.Context, Process) (int, error)
}

// InnerMain is the inner branch that lands.
const InnerMain = "refs/heads/main"

const (
	// lookTime bounds a look into the workspace: a FIFO in the place of a ref must not hold us.
	lookTime = 4 * time.Second
	// lookLimit bounds what such a look may print.
	lookLimit = 1 << 20
	// refsLimit bounds how many refs are listed.
	refsLimit = 1000
)

// innerEnv holds for git inside; the inner configuration is obeyed there and can only hurt itself.
func (w Workspace) innerEnv() []string {
	return append([]string{
		"GIT_DIR=" + path.Join(w.Dir, ".git"),
		"GIT_WORK_TREE=" + w.Dir,
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_ALLOW_PROTOCOL=none",
	}, FixedEnv...)
}

// argv is a command line of git inside.
func (w Workspace) argv(args ...string) []string {
	return append([]string{"git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "pack.threads=1", "-c", streamed}, args...)
}

// git runs git inside; a status other than zero is an *[Error].
func (w Workspace) git(ctx context.Context, stdin io.Reader, stdout io.Writer, args ...string) error {
	var stderr Stderr
	code, err := w.patiently(ctx, Process{Argv: w.argv(args...), Env: w.innerEnv(), Stdin: stdin, Stdout: stdout, Stderr: &stderr})
	var stalled *Invalid
	if errors.As(err, &stalled) {
		return err
	}
	if err != nil {
		return fmt.Errorf("git %s in the workspace: %w", args[0], err)
	}
	if code != 0 {
		return &Error{Args: args, Status: code, Stderr: stderr.String()}
	}
	return nil
}

func (w Workspace) look(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	var out bytes.Buffer
	err := w.git(ctx, nil, &cappedWriter{w: &out, left: lookLimit}, args...)
	var failed *Error
	switch {
	case errors.As(err, &failed) && failed.Status == 1 && failed.Stderr == "":
		return "", errNothing
	case errors.As(err, &failed):
		return "", invalid("git %s in the workspace: %s", args[0], failed.Stderr)
	case errors.Is(err, context.DeadlineExceeded):
		return "", &Invalid{Stalled: true, Reason: fmt.Sprintf(
			"git %s in the workspace did not answer within %s (a FIFO or an endless file in .git?)", args[0], lookTime)}
	}
	return strings.TrimSuffix(out.String(), "\n"), err
}

// InnerRef is a ref of the inner repository.
type InnerRef struct {
	Name   string
	Commit OID
}

// Branches lists the inner branches, at most 1,000 of them; main comes whatever their number.
func (w Workspace) Branches(ctx context.Context, patterns ...string) ([]InnerRef, error) {
	args := append([]string{"for-each-ref", "--format=%(objectname) %(refname)", "--count=" + strconv.Itoa(refsLimit)}, patterns...)
	text, err := w.look(ctx, args...)
	if err != nil {
		return nil, err
	}
	var refs []InnerRef
	for line := range strings.Lines(text) {
		id, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		oid, err := ParseOID(id)
		if err != nil {
			return nil, invalid("ref %s: %s", Escape(name), err)
		}
		refs = append(refs, InnerRef{name, oid})
	}
	return refs, nil
}

// ErrNoCommit says that a name stands for no commit.
var ErrNoCommit = errors.New("no such commit")

// errNothing says that git found nothing, without a word.
var errNothing = errors.New("git found nothing")

// Resolve returns the commit that a name stands for, or [ErrNoCommit].
func (w Workspace) Resolve(ctx context.Context, name string) (OID, error) {
	text, err := w.look(ctx, "for-each-ref", "--format=%(objectname)", "--count=1", name, "refs/heads/"+name)
	if err != nil {
		return "", err
	}
	if text != "" {
		return ParseOID(text)
	}
	text, err = w.look(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	if errors.Is(err, errNothing) {
		return "", fmt.Errorf("%q in the workspace: %w", name, ErrNoCommit)
	}
	if err != nil {
		return "", err
	}
	return ParseOID(text)
}

// Main returns the tip of the inner main; empty if there is none. A main that is there and names no commit is an [Invalid].
func (w Workspace) Main(ctx context.Context) (OID, error) {
	refs, err := w.Branches(ctx, InnerMain)
	for _, r := range refs {
		if r.Name == InnerMain {
			return r.Commit, err
		}
	}
	if err == nil {
		err = w.brokenMain(ctx)
	}
	return "", err
}

// seeMain prints what lies in the place of the file of main, which git does not list because it cannot read it. An empty folder
// is as good as nothing: git removes it.
const seeMain = `f=$1/.git/refs/heads/main
if [ -L "$f" ]; then echo 'is a symbolic link that leads to no ref'
elif [ -d "$f" ]; then for e in "$f"/*; do if [ -e "$e" ]; then echo 'is a folder'; fi; break; done
elif [ -f "$f" ] && [ -s "$f" ]; then printf 'holds '; head -c 60 "$f"
elif [ -f "$f" ]; then echo 'is an empty file'
elif [ -e "$f" ]; then echo 'is not a regular file'
fi`

// brokenMain returns an [Invalid] if something that is not a ref lies in the place of main.
func (w Workspace) brokenMain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	var out bytes.Buffer
	_, err := w.Run(ctx, Process{Argv: []string{"sh", "-c", seeMain, "sh", w.Dir}, Env: w.innerEnv(),
		Stdout: &cappedWriter{w: &out, left: lookLimit}, Stderr: &Stderr{}})
	if text := strings.TrimSpace(out.String()); text != "" {
		return invalid("the ref %s is broken: it %s", InnerMain, Escape(text))
	}
	return err
}

// Count counts the commits that want reaches and none of have does. Those of have that the agent has thrown away
// (amended, and collected as garbage) reach nothing.
func (w Workspace) Count(ctx context.Context, want string, have ...string) (int, error) {
	text, err := w.look(ctx, append([]string{"rev-list", "--count", "--ignore-missing", want, "--not"}, append(have, "--")...)...)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

// Pack writes a pack of what want reaches and have does not. Objects of have serve as delta bases.
func (w Workspace) Pack(ctx context.Context, want OID, have []OID, out io.Writer) error {
	var revs strings.Builder
	fmt.Fprintln(&revs, want)
	for _, h := range have {
		fmt.Fprintf(&revs, "^%s\n", h)
	}
	err := w.git(ctx, strings.NewReader(revs.String()), out,
		"pack-objects", "--revs", "--thin", "--stdout", "-q", "--delta-base-offset", "--window=10")
	var failed *Error
	switch {
	case errors.As(err, &failed) && OutOfMemory(failed):
		return beyond("%s cannot be exported within the memory that airlock.limit.memory allows: %s", want, failed.Stderr)
	case errors.As(err, &failed):
		return invalid("%s cannot be exported: %s", want, failed.Stderr)
	}
	return err
}

// FirstParents lists the first-parent history of want down to have, the oldest commit first.
func (w Workspace) FirstParents(ctx context.Context, want OID, have []OID) ([]OID, error) {
	text, err := w.look(ctx, append([]string{"rev-list", "--first-parent", "--reverse", "--ignore-missing", string(want), "--not"}, texts(have)...)...)
	if err != nil {
		return nil, err
	}
	var ids []OID
	for line := range strings.Lines(text) {
		id, err := ParseOID(strings.TrimSpace(line))
		if err != nil {
			return nil, invalid("git rev-list in the workspace: %s", err)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// PathOf returns a path at which a commit has an object, empty if it has none.
func (w Workspace) PathOf(ctx context.Context, commit, object OID) (string, error) {
	text, err := w.look(ctx, "ls-tree", "-r", "-t", "-z", "--full-tree", string(commit))
	for record := range strings.SplitSeq(text, "\x00") {
		if head, name, _ := strings.Cut(record, "\t"); strings.HasSuffix(head, " "+string(object)) {
			return name, nil
		}
	}
	return "", err
}

// fill makes an inner repository of a pack and a root commit; it is run by sh inside a prison
// nobody has worked in yet. Arguments: object format, name, mail, tip of main. An invented name holds nothing that a
// configuration would have escaped, and each process less is felt. The attributes of its own, which go
// before those of the tree, make the checkout write the blobs byte for byte. Only working-tree-encoding
// is obeyed: a file in another encoding than its attribute says makes every later git add fail.
const fill = `set -e
git init -q -b main --template= --object-format="$1" .
printf '[user]\n\tname = %s\n\temail = %s\n' "$2" "$3" >>.git/config
mkdir -p .git/objects/pack .git/info
tar -x -f - -C .git/objects
git update-ref refs/heads/main "$4"
echo '* -text -ident -filter' >.git/info/attributes
git -c checkout.workers=0 read-tree --reset -u "$4"
rm .git/info/attributes`

// Fill makes the inner repository: the objects of the packs (paths without extension) and of a commit, if that is in
// none of them, with main at tip, checked out with no configuration but the inner repository's own.
func (w Workspace) Fill(ctx context.Context, format, name, mail string, tip OID, commit []byte, packs ...string) error {
	var stderr Stderr
	r, pw := io.Pipe()
	defer r.Close()
	go func() { pw.CloseWithError(tarObjects(pw, format, commit, packs)) }()
	code, err := w.Run(ctx, Process{
		Argv: []string{"sh", "-c", fill, "sh", format, name, mail, string(tip)},
		// What is made may be used by an older git than makes it.
		Env:   append([]string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=", "GIT_DEFAULT_REF_FORMAT=files"}, FixedEnv...),
		Stdin: r, Stdout: io.Discard, Stderr: &stderr,
	})
	if err == nil && code != 0 {
		err = errors.New(stderr.String())
	}
	if err != nil {
		return fmt.Errorf("fill the workspace: %w", err)
	}
	return nil
}

// Mapped files of a pack.
var packExtensions = []string{".pack", ".idx"}

func openPack(base string) (files []*os.File, err error) {
	for _, ext := range packExtensions {
		f, err := os.Open(base + ext)
		if err != nil {
			return files, err
		}
		files = append(files, f)
	}
	return files, nil
}
