package dialect

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/docker/docker/api/types/container"
)

// Entry is a file in an archive, or a folder if Mode says so.
type Entry struct {
	Name     string // path from the archive's top
	Content  string
	Link     string // target of a symbolic link; empty for other entries
	Mode     int64  // as in tar: permission bits
	UID, GID int
}

// Folder returns the entry for a folder.
func Folder(name string, mode int64, uid, gid int) Entry {
	return Entry{Name: name + "/", Mode: mode, UID: uid, GID: gid}
}

// Pack returns a tar archive.
func Pack(entries []Entry) (io.Reader, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{
			Name: e.Name, Mode: e.Mode, Uid: e.UID, Gid: e.GID, Size: int64(len(e.Content)), Typeflag: tar.TypeReg,
		}
		switch {
		case e.Name[len(e.Name)-1] == '/':
			h.Typeflag = tar.TypeDir
		case e.Link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.Link
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := io.WriteString(w, e.Content); err != nil {
			return nil, err
		}
	}
	return &b, w.Close()
}

// Put unpacks entries in a folder of a container, running or not.
func (e *Engine) Put(ctx context.Context, id, folder string, entries ...Entry) error {
	archive, err := Pack(entries)
	if err != nil {
		return err
	}
	bounded, cancel := Call(ctx)
	defer cancel()
	err = e.CopyToContainer(bounded, id, folder, archive, container.CopyToContainerOptions{})
	return e.Failed(ctx, "fill "+folder, err)
}

// Small is the largest size in bytes of a file that [Engine.Get] reads. The limit is needed because the agent may have written the file.
const Small = 4096

// ErrNotSmall is the error of [Engine.Get] for a file that it refuses to read.
var ErrNotSmall = errors.New("not a small regular file")

// Get reads a small file of a container, running or not. It does not follow a symbolic link as the last element of
// the path.
func (e *Engine) Get(ctx context.Context, id, file string) (string, error) {
	bounded, cancel := Call(ctx)
	defer cancel()
	content, _, err := e.CopyFromContainer(bounded, id, file)
	if err != nil {
		return "", err
	}
	defer content.Close()
	archive := tar.NewReader(content)
	h, err := archive.Next()
	if err != nil {
		return "", err
	}
	if h.Typeflag != tar.TypeReg || h.Size > Small {
		return "", fmt.Errorf("%s: %w", file, ErrNotSmall)
	}
	b, err := io.ReadAll(archive)
	return string(b), err
}
