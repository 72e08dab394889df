package gitops

import (
	"archive/tar"
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"path"
)

// tarObjects writes an object directory as a tar: packs as they are, and one loose commit, unless it is empty.
// Everything is read-only and dated zero, so that nothing tells where it came from.
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
	id := HashObject(format, "commit", commit)
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
