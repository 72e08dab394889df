package gitops

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// File is what a tree has at a path: a file, a symbolic link, or a submodule.
type File struct {
	Path string
	Entry
}

// Files lists what is in a tree and the folders below it, in git's order.
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
			return nil, fmt.Errorf("git ls-tree answered %q", Escape(r))
		}
		files = append(files, File{path, e})
	}
	return files, nil
}

// Blobs calls each with the first limit bytes of every named blob, in order, and with the size of the whole. One
// git process reads them all; what is only promised to be there it fetches.
func (g *Git) Blobs(ctx context.Context, ids []OID, limit int64, each func(n int, head []byte, size int64) error) error {
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
		// git ends when its input does: held open until all is read, it does not end with answers on the way, which are
		// given up after a while (Git.command). each may take its time.
		in := io.MultiReader(strings.NewReader(ask.String()+"flush\n"), openUntil{ctx})
		call := Call{Args: []string{"cat-file", "--batch-command", "--buffer"}, Stdin: in, Stdout: w, Limit: math.MaxInt64}
		w.CloseWithError(g.Configured(streamed).With("GIT_NO_LAZY_FETCH=0").Look(ctx, call))
	}()
	out := bufio.NewReaderSize(r, 64<<10)
	for n, id := range ids {
		head, size, err := readHead(out, limit)
		if err != nil {
			return fmt.Errorf("read blob %s: %w", id, err)
		}
		if err := each(n, head, size); err != nil {
			return err
		}
	}
	return nil
}

// openUntil is an input that says nothing and ends with its context.
type openUntil struct{ context.Context }

func (o openUntil) Read([]byte) (int, error) {
	<-o.Done()
	return 0, io.EOF
}

// readHead reads the first limit bytes of a blob that git cat-file answers with, and passes over the rest.
func readHead(out *bufio.Reader, limit int64) (head []byte, size int64, err error) {
	line, err := out.ReadString('\n')
	if err != nil {
		return nil, 0, err
	}
	var name, kind string
	if n, _ := fmt.Sscanf(line, "%s %s %d", &name, &kind, &size); n != 3 || kind != "blob" {
		return nil, 0, fmt.Errorf("cat-file answered %q", Escape(strings.TrimSpace(line)))
	}
	head = make([]byte, min(size, limit))
	if _, err := io.ReadFull(out, head); err != nil {
		return nil, 0, err
	}
	_, err = io.CopyN(io.Discard, out, size-int64(len(head))+1)
	return head, size, err
}

// Lstat looks at a path of the working tree and follows no link on the way, as git does: below a
// link there is nothing.
func (r *Repository) Lstat(name string) (fs.FileInfo, error) {
	for i, char := range name {
		if char != '/' {
			continue
		}
		info, err := os.Lstat(filepath.Join(r.Top, name[:i]))
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			return nil, fs.ErrNotExist
		}
	}
	return os.Lstat(filepath.Join(r.Top, name))
}

// There reports whether something is at a path of the working tree.
func (r *Repository) There(name string) bool {
	_, err := r.Lstat(name)
	return err == nil
}
