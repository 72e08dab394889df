package inner

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
)

// Process is a program to run inside a prison.
type Process struct {
	Argv, Env      []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Workspace drives git inside a prison, where git can see only the inner repository. An agent wrote what git
// returns there, so Workspace limits and checks it.
type Workspace struct {
	// Dir is the path of the workspace inside.
	Dir string
	// Scratch is the path of an empty folder inside, into which only this Workspace writes. The prison removes it at its end.
	Scratch string
	// Run runs a process inside to its end and returns its exit status.
	Run func(context.Context, Process) (int, error)

	own, common string // the git directory and the common directory of a [Place]; empty: .git of Dir
	lent        string // a folder with more objects, for a repository of its own
}

// Main is the inner branch that lands.
const Main = "refs/heads/main"

const (
	// lookTime limits the time of a read from the workspace, since there may be an endless file in place of a ref. A git that waits for a
	// FIFO is ended sooner.
	lookTime = 12 * time.Second
	// lookLimit limits the output of such a read.
	lookLimit = 1 << 20
	// refsLimit limits the number of listed refs.
	refsLimit = 1000
)

// noGraph keeps git from reading the commit-graph. It has the form of [gitops.NoHooks].
const noGraph = " 'core.commitgraph'='false'"

// innerEnv returns the environment of git inside. Git uses the inner configuration there, which can harm only the
// prison. Git ignores grafts and the commit-graph, which could give a commit other parents, as it ignores replace refs.
func (w Workspace) innerEnv() []string {
	return append([]string{
		"GIT_DIR=" + w.gitDir(),
		"GIT_WORK_TREE=" + w.Dir,
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_ALLOW_PROTOCOL=none",
		"GIT_GRAFT_FILE=/dev/null/none", // a path that cannot exist
		"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + w.lent,
		gitops.NoHooks + noGraph,
	}, gitops.FixedEnv...)
}

func (w Workspace) gitDir() string { return cmp.Or(w.own, path.Join(w.Dir, ".git")) }

// argv returns a git command line for use inside.
func (w Workspace) argv(args ...string) []string {
	return append([]string{"git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "pack.threads=1", "-c", gitops.StreamLarge}, args...)
}

// output runs a script for sh that only reads. It returns at most lookLimit bytes of the script's output, and its exit status.
func (w Workspace) output(ctx context.Context, script string, args ...string) (printed string, code int, err error) {
	var out bytes.Buffer
	code, err = w.Run(ctx, Process{Argv: append([]string{"sh", "-c", script, "sh"}, args...), Env: w.innerEnv(),
		Stdout: gitops.CapOutput(&out, lookLimit), Stderr: io.Discard})
	return out.String(), code, err
}

// records returns the texts in an output that have a NUL after them. What follows the last one may be incomplete.
func records(out string) []string {
	all := strings.Split(out, "\x00")
	return all[:len(all)-1]
}

// failure returns the error of a step whose process inside could not be run, or has ended with an exit status other than zero and printed stderr.
// It returns nil if there is none.
func failure(step string, code int, stderr string, err error) error {
	if err == nil && code != 0 {
		err = errors.New(strings.TrimSpace(fmt.Sprintf("exit status %d %s", code, stderr)))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	return nil
}

// objectLimit bounds the memory that rev-list may allocate at once. It inflates all of each commit to find the parents, and 400 MB can be 0.4 MB on
// the disk. Its table of objects is that large for 16 million of them.
const objectLimit = "GIT_ALLOC_LIMIT=256m"

// overLimit matches git's message for an allocation that is larger.
var overLimit = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`attempting to allocate (\d{1,20}) over limit`) })

// git runs git inside. It returns an *[Error] for an exit status other than zero, and an [Invalid] if rev-list has met an object that is too large.
func (w Workspace) git(ctx context.Context, stdin io.Reader, stdout io.Writer, args ...string) error {
	var stderr gitops.Stderr
	env := w.innerEnv()
	if args[0] == "rev-list" {
		env = append(env, objectLimit)
	}
	code, err := w.runUnlessIdle(ctx, Process{Argv: w.argv(args...), Env: env, Stdin: stdin, Stdout: stdout, Stderr: &stderr})
	if _, ok := errors.AsType[*Invalid](err); ok {
		return err
	}
	if err != nil {
		return fmt.Errorf("git %s in the workspace: %w", args[0], err)
	}
	if needs := overLimit().FindStringSubmatch(stderr.String()); code != 0 && needs != nil {
		return Beyondf("an object in the history has %s bytes, too many for git %s in the workspace", needs[1], args[0])
	}
	if code != 0 {
		return &gitops.Error{Args: args, Status: code, Lines: stderr.Lines()}
	}
	return nil
}

func (w Workspace) query(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	var out bytes.Buffer
	err := w.git(ctx, nil, gitops.CapOutput(&out, lookLimit), args...)
	var failed *gitops.Error
	switch {
	case errors.As(err, &failed) && failed.Status == 1 && failed.Said() == "":
		return "", errNothing
	case errors.As(err, &failed):
		return "", Invalidf("git %s in the workspace: %s", args[0], failed.Said())
	case errors.Is(err, context.DeadlineExceeded):
		return "", &Invalid{Stalled: true, Reason: fmt.Sprintf(
			"git %s in the workspace did not answer within %s (an endless file or very large objects in .git?)", args[0], lookTime)}
	}
	return strings.TrimSuffix(out.String(), "\n"), err
}

// Ref is a ref of the inner repository.
type Ref struct {
	Name   string
	Commit gitops.OID
}

// Branches lists the refs that match patterns, at most the first 1,000 in the order of their names.
func (w Workspace) Branches(ctx context.Context, patterns ...string) ([]Ref, error) {
	args := append([]string{"for-each-ref", "--format=%(objectname) %(refname)", "--count=" + strconv.Itoa(refsLimit)}, patterns...)
	text, err := w.query(ctx, args...)
	if err != nil {
		return nil, err
	}
	var refs []Ref
	for line := range strings.Lines(text) {
		id, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		oid, err := gitops.ParseOID(id)
		if err != nil {
			return nil, Invalidf("ref %s: %s", gitops.Text(name), err)
		}
		refs = append(refs, Ref{name, oid})
	}
	return refs, nil
}

// errNothing means that git found nothing and printed no message.
var errNothing = errors.New("git found nothing")

// Resolve returns the commit that a name resolves to, or [ErrNoCommit].
func (w Workspace) Resolve(ctx context.Context, name string) (gitops.OID, error) {
	text, err := w.query(ctx, "for-each-ref", "--format=%(objectname)", "--count=1", name, "refs/heads/"+name)
	if err != nil {
		return "", err
	}
	if text != "" {
		return gitops.ParseOID(text)
	}
	text, err = w.query(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	if errors.Is(err, errNothing) {
		return "", fmt.Errorf("%q in the workspace: %w", name, gitops.ErrNoCommit)
	}
	if err != nil {
		return "", err
	}
	return gitops.ParseOID(text)
}

// Main returns the tip of the inner main, empty if there is none. If main exists but does not name a commit, Main
// returns an [Invalid].
func (w Workspace) Main(ctx context.Context) (gitops.OID, error) {
	refs, err := w.Branches(ctx, Main)
	for _, r := range refs {
		if r.Name == Main {
			return r.Commit, err
		}
	}
	if err == nil {
		err = w.brokenMain(ctx)
	}
	return "", err
}

// refStorage is the setting for the format of the refs and, since git 2.54, for their place, which can be outside of .git.
const refStorage = "extensions.refStorage"

// seeMain prints what is at the path of main's file when that is not a ref that git can read. An empty folder counts as nothing, since git
// removes it. If .git has main, but refStorage names another place for the refs, seeMain prints "elsewhere " and this place.
const seeMain = `f=$1/.git/refs/heads/main p=$1/.git/packed-refs
s=$(GIT_DIR=/ git config --file "$1/.git/config" ` + refStorage + ` | head -c 60)
has() { [ -f "$f" ] || { [ -f "$p" ] && grep -q ' refs/heads/main$' "$p"; }; }
if [ -n "$s" ] && [ "$s" != files ] && has; then printf 'elsewhere %s' "$s"; exit; fi
if [ -L "$f" ]; then echo 'is a symbolic link that leads to no ref'
elif [ -d "$f" ]; then for e in "$f"/*; do if [ -e "$e" ]; then echo 'is a folder'; fi; break; done
elif [ -f "$f" ] && [ -s "$f" ]; then printf 'holds '; head -c 60 "$f"
elif [ -f "$f" ]; then echo 'is an empty file'
elif [ -e "$f" ]; then echo 'is not a regular file'
fi`

// brokenMain returns an [Invalid] if something other than a ref is at the path of main.
func (w Workspace) brokenMain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	out, _, err := w.output(ctx, seeMain, w.Dir)
	text := strings.TrimSpace(out)
	if place, elsewhere := strings.CutPrefix(text, "elsewhere "); elsewhere {
		return &Invalid{Setting: refStorage, Reason: fmt.Sprintf("%s is %s, which has no ref %s, but .git has it", refStorage, gitops.Text(place), Main)}
	}
	if text != "" {
		return Invalidf("the ref %s is broken: it %s", Main, gitops.Text(text))
	}
	return err
}

// Count returns the number of commits that are reachable from want but not from have. Commits in have that no
// longer exist inside (amended, and removed by gc) are ignored. A ref in want without its commit is an [Invalid].
func (w Workspace) Count(ctx context.Context, want string, have ...string) (int, error) {
	return w.countRevisions(ctx, append([]string{want, "--ignore-missing", "--not"}, have...)...)
}

// countRevisions returns the number of commits that git rev-list lists for revisions. Git applies --ignore-missing to the revisions that come after.
func (w Workspace) countRevisions(ctx context.Context, revisions ...string) (int, error) {
	text, err := w.query(ctx, append([]string{"rev-list", "--count"}, append(revisions, "--")...)...)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

// Pack writes a pack of the objects that are reachable from want but not from have. Objects of have serve as delta
// bases.
func (w Workspace) Pack(ctx context.Context, want gitops.OID, have []gitops.OID, out io.Writer) error {
	var revs strings.Builder
	fmt.Fprintln(&revs, want)
	for _, h := range have {
		fmt.Fprintf(&revs, "^%s\n", h)
	}
	err := w.git(ctx, strings.NewReader(revs.String()), out,
		"pack-objects", "--revs", "--thin", "--stdout", "-q", "--delta-base-offset", "--window=10")
	var failed *gitops.Error
	switch {
	case errors.As(err, &failed) && gitops.OutOfMemory(failed):
		return Beyondf("%s cannot be exported within the memory that airlock.limit.memory allows: %s", want, failed.Said())
	case errors.As(err, &failed):
		return Invalidf("%s cannot be exported: %s", want, failed.Said())
	}
	return err
}

// FirstParents lists the first-parent history of want down to have, the oldest commit first.
func (w Workspace) FirstParents(ctx context.Context, want gitops.OID, have []gitops.OID) ([]gitops.OID, error) {
	text, err := w.query(ctx, append([]string{"rev-list", "--first-parent", "--reverse", "--ignore-missing", string(want), "--not"}, gitops.Names(have)...)...)
	if err != nil {
		return nil, err
	}
	var ids []gitops.OID
	for line := range strings.Lines(text) {
		id, err := gitops.ParseOID(strings.TrimSpace(line))
		if err != nil {
			return nil, Invalidf("git rev-list in the workspace: %s", err)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// PathOf returns a path at which a commit has an object, empty if it has none.
func (w Workspace) PathOf(ctx context.Context, commit, object gitops.OID) (string, error) {
	text, err := w.query(ctx, "ls-tree", "-r", "-t", "-z", "--full-tree", string(commit))
	for record := range strings.SplitSeq(text, "\x00") {
		if head, name, _ := strings.Cut(record, "\t"); strings.HasSuffix(head, " "+string(object)) {
			return name, nil
		}
	}
	return "", err
}

// fill is a script for sh that makes an inner repository from a pack and a root commit, inside a prison in which
// nobody has worked yet. Arguments: object format, name, mail, tip of main. The script writes the configuration
// itself: an invented name needs no escaping, and every process that is not started saves noticeable time. The
// repository's own attributes, which have precedence over those of the tree, make the checkout write the blobs byte
// for byte. Only working-tree-encoding stays in effect, since every later git add would fail for a file with
// another encoding than its attribute names.
const fill = `set -e
git init -q -b main --template= --object-format="$1" .
printf '[user]\n\tname = %s\n\temail = %s\n' "$2" "$3" >>.git/config
mkdir -p .git/objects/pack .git/info
tar -x -f - -C .git/objects
git update-ref refs/heads/main "$4"
echo '* -text -ident -filter' >.git/info/attributes
git -c checkout.workers=0 read-tree --reset -u "$4"
rm .git/info/attributes`

// Fill makes the inner repository. It contains the objects of the packs (paths without extension), and a commit if
// that is in none of them. main is at tip, and is checked out with only the inner repository's own configuration.
func (w Workspace) Fill(ctx context.Context, format, name, mail string, tip gitops.OID, commit []byte, packs ...string) error {
	var stderr gitops.Stderr
	r, pw := io.Pipe()
	defer r.Close()
	go func() { pw.CloseWithError(tarObjects(pw, format, commit, packs)) }()
	code, err := w.Run(ctx, Process{
		Argv: []string{"sh", "-c", fill, "sh", format, name, mail, string(tip)},
		// An older git than the one that makes the repository may use it.
		Env:   append([]string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=", "GIT_DEFAULT_REF_FORMAT=files"}, gitops.FixedEnv...),
		Stdin: r, Stdout: io.Discard, Stderr: &stderr,
	})
	return failure("fill the workspace", code, stderr.String(), err)
}

// The extensions of the files that make up a pack.
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
