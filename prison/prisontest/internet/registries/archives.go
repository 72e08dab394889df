package registries

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"time"
)

// made is the modification time of each file.
var made = time.Unix(1_700_000_000, 0)

// file is a file of an archive.
type file struct{ name, content string }

// tarball returns a tar archive of files, compressed with gzip.
func tarball(all ...file) string {
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	archive := tar.NewWriter(packed)
	for _, f := range all {
		must(archive.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.content)), ModTime: made}))
		_, err := archive.Write([]byte(f.content))
		must(err)
	}
	must(archive.Close())
	must(packed.Close())
	return out.String()
}

// zipped returns a zip file of files.
func zipped(all ...file) string {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, f := range all {
		w, err := archive.Create(f.name)
		must(err)
		_, err = w.Write([]byte(f.content))
		must(err)
	}
	must(archive.Close())
	return out.String()
}

// sum256 returns the SHA-256 of a text in hexadecimal digits.
func sum256(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// must panics if writing to memory fails, which cannot happen.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
