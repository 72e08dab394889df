package inner

import (
	"archive/tar"
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"path"

	"github.com/git-airlock/git-airlock/gitops"
)

// tarObjects writes an object directory as a tar archive: packs unchanged, and one loose commit, unless commit is
// empty. All files are read-only and have the time zero, so that the archive reveals nothing about its origin.
func tarObjects(w io.Writer, format string, commit []byte, packs []string) error {
	t := tar.NewWriter(w)
	for _, base := range packs {
		if err := tarPack(t, base); err != nil {
			return err
		}
	}
	if len(commit) == 0 {
		return t.Close()
	}
	var loose bytes.Buffer
	z := zlib.NewWriter(&loose)
	fmt.Fprintf(z, "commit %d\x00", len(commit))
	_, _ = z.Write(commit)
	if err := z.Close(); err != nil {
		return err
	}
	id := gitops.HashObject(format, "commit", commit)
	if err := tarFile(t, path.Join(string(id[:2]), string(id[2:])), int64(loose.Len()), &loose); err != nil {
		return err
	}
	return t.Close()
}

func tarPack(t *tar.Writer, base string) error {
	files, err := openPack(base)
	for i, f := range files {
		defer f.Close()
		info, statErr := f.Stat()
		if statErr != nil {
			return statErr
		}
		if err := tarFile(t, "pack/"+path.Base(base)+packExtensions[i], info.Size(), f); err != nil {
			return err
		}
	}
	return err
}

func tarFile(t *tar.Writer, name string, size int64, content io.Reader) error {
	if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o444, Size: size}); err != nil {
		return err
	}
	_, err := io.Copy(t, content)
	return err
}
