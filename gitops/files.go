package gitops

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops/far"
)

// File is an entry of a tree at a path: a file, a symbolic link, or a submodule.
type File struct {
	Path string
	Entry
}

// Files lists the entries of a tree and of the folders below it, in git's order.
func (g *Git) Files(ctx context.Context, tree OID) ([]File, error) {
	records, err := g.Records(ctx, Call{Args: []string{"ls-tree", "-r", "-z", string(tree)}})
	if err != nil {
		return nil, err
	}
	files := make([]File, 0, len(records))
	for _, r := range records {
		about, path, _ := strings.Cut(r, "\t")
		mode, rest, _ := strings.Cut(about, " ")
		_, id, found := strings.Cut(rest, " ")
		e, err := entry(mode, id)
		if !found || err != nil {
			return nil, fmt.Errorf("git ls-tree answered %q", Text(r))
		}
		files = append(files, File{path, e})
	}
	return files, nil
}

// Blobs calls each for every named blob in order, with the first limit bytes of the blob and its full size. One git
// process reads all blobs, and fetches those that are only promised.
func (g *Git) Blobs(ctx context.Context, ids []OID, limit int64, each func(n int, head []byte, size int64) error) error {
	return g.objects(ctx, "blob", ids, limit, each)
}

// headersRoom is the space for the headers of a commit.
const headersRoom = 64 << 10

// Messages calls each for every named commit in order, with the first limit bytes of the commit's message, and the number of bytes after them.
// One git process reads all commits.
func (g *Git) Messages(ctx context.Context, ids []OID, limit int, each func(n int, message []byte, left int) error) error {
	return g.objects(ctx, "commit", ids, int64(limit)+headersRoom, func(n int, head []byte, size int64) error {
		headers, message, _ := bytes.Cut(head, []byte("\n\n"))
		message = message[:min(limit, len(message))]
		left := int(size) - len(headers) - len("\n\n") - len(message)
		return each(n, message, max(0, left)) // a commit may end after its headers
	})
}

// objects calls each for every named object of a kind, as [Git.Blobs] does.
func (g *Git) objects(ctx context.Context, kind string, ids []OID, limit int64, each func(n int, head []byte, size int64) error) error {
	if len(ids) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, w := io.Pipe()
	defer r.Close()
	go func() {
		var ask strings.Builder
		for _, id := range ids {
			fmt.Fprintf(&ask, "contents %s\n", id)
		}
		// Git ends when its input ends, and a while later Git.command drops the answers that are not read yet. Since use of
		// each blob may take longer than that, the input stays open until all blobs are read.
		in := io.MultiReader(strings.NewReader(ask.String()+"flush\n"), openUntil{ctx})
		call := Call{Args: []string{"cat-file", "--batch-command", "--buffer"}, Stdin: in, Stdout: w, Limit: math.MaxInt64}
		w.CloseWithError(g.Configured(StreamLarge).With("GIT_NO_LAZY_FETCH=0").Look(ctx, call))
	}()
	out := bufio.NewReaderSize(r, 64<<10)
	for n, id := range ids {
		head, size, err := readHead(out, kind, limit)
		if err != nil {
			return fmt.Errorf("read %s %s: %w", kind, id, err)
		}
		if err := each(n, head, size); err != nil {
			return err
		}
	}
	return nil
}

// openUntil is an input without content that ends when its context does.
type openUntil struct{ context.Context }

func (o openUntil) Read([]byte) (int, error) {
	<-o.Done()
	return 0, io.EOF
}

// readHead reads the first limit bytes of an object of a kind from the output of git cat-file, and skips the rest.
func readHead(out *bufio.Reader, wanted string, limit int64) (head []byte, size int64, err error) {
	line, err := out.ReadString('\n')
	if err != nil {
		return nil, 0, err
	}
	var name, kind string
	if n, _ := fmt.Sscanf(line, "%s %s %d", &name, &kind, &size); n != 3 || kind != wanted {
		return nil, 0, fmt.Errorf("cat-file answered %q", Text(strings.TrimSpace(line)))
	}
	head = make([]byte, min(size, limit))
	if _, err := io.ReadFull(out, head); err != nil {
		return nil, 0, err
	}
	_, err = io.CopyN(io.Discard, out, size-int64(len(head))+1)
	return head, size, err
}

// Lstat returns information about a path of the working tree. Like git it follows no symbolic link in the path: below a link nothing exists.
func (r *Repository) Lstat(name string) (fs.FileInfo, error) { return LstatBelow(r.Top, name) }

// LstatBelow returns the file info of a path below a folder. A path below a symbolic link does not exist.
func LstatBelow(folder, name string) (fs.FileInfo, error) {
	for i, char := range name {
		if char != '/' {
			continue
		}
		info, err := far.Lstat(filepath.Join(folder, name[:i]))
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			return nil, fs.ErrNotExist
		}
	}
	return far.Lstat(filepath.Join(folder, name))
}

// Within reports whether a path is a folder or below it.
func Within(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

// There reports whether a path of the working tree exists.
func (r *Repository) There(name string) bool {
	_, err := r.Lstat(name)
	return err == nil
}

// File reads a file of a commit or tree. The file may not be longer than limit bytes. If the object is a blob, it is the file itself.
func (g *Git) File(ctx context.Context, id OID, path string, limit int64) ([]byte, error) {
	kind, err := g.Output(ctx, "cat-file", "-t", string(id))
	if err != nil {
		return nil, err
	}
	name := string(id)
	if kind != "blob" {
		name += ":" + path
	}
	var out bytes.Buffer
	if err := g.Look(ctx, Call{Args: []string{"cat-file", "blob", name}, Stdout: &out, Limit: limit}); err != nil {
		return nil, fmt.Errorf("read %q: %w", path, err)
	}
	return out.Bytes(), nil
}

// untrackedTime limits how long git may match patterns against the files of a work tree.
const untrackedTime = 2 * time.Minute

// Untracked lists the files of the work tree that git does not track and that match the patterns in a file. It does not list files of nested
// repositories. Since the patterns may come from an agent, git has only untrackedTime to match them.
func (r *Repository) Untracked(ctx context.Context, patterns string) ([]string, error) {
	return r.Records(ctx, Call{Args: []string{"ls-files", "--others", "--ignored", "-z", "--exclude-from=" + patterns}, For: untrackedTime})
}

// Glob returns the files in a folder whose names match a pattern, sorted, and none if it cannot read the folder. In a pattern for
// [filepath.Glob], the path of a user's folder would need quotes for its special characters.
func Glob(dir, pattern string) (found []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if match, _ := filepath.Match(pattern, e.Name()); match {
			found = append(found, filepath.Join(dir, e.Name()))
		}
	}
	return found
}
