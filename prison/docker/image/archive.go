package image

import (
	"crypto/sha256"
	"fmt"
	"io"
	"strings"

	"github.com/git-airlock/git-airlock/prison/docker/dialect"
)

// ignoreName is the file in a context in which the engine looks for the names of files that no step can copy.
const ignoreName = ".dockerignore"

// stepsName returns the name of the Dockerfile in the archive of a build. A commit can contain a file of any name, so the name is derived
// from all paths and links of the context. A file of that name, a link to it, or a file that the engine looks for beside a Dockerfile would
// change the name.
func (w Build) stepsName() string {
	sum := sha256.New()
	for _, f := range w.Files {
		fmt.Fprintf(sum, "%q %q\n", f.Name, f.Link)
	}
	return fmt.Sprintf(".build-steps-%x", sum.Sum(nil))
}

// archive returns the archive for the engine and the name of the Dockerfile in it. Entries that this program adds come last, since a later
// entry replaces an earlier one of the same name.
func (w Build) archive() (io.Reader, string, error) {
	name := w.stepsName()
	ignore := dialect.Entry{Name: ignoreName, Content: ignoreName + "\n", Mode: 0o644}
	ignores := true
	var entries []dialect.Entry
	for _, f := range w.Files {
		e := dialect.Entry{Name: f.Name, Content: string(f.Content), Link: f.Link, Mode: f.Mode}
		switch {
		case strings.HasPrefix(f.Name, ignoreName+"/") || f.Name == ignoreName && f.Link != "":
			ignores = false // a step that copies this folder or link must find it unchanged
			entries = append(entries, e)
		case f.Name != ignoreName:
			entries = append(entries, e)
		default:
			ignore = e
			ignore.Content += "\n"
		}
	}
	// The engine removes the Dockerfile from the context after reading it, if it is ignored. So "COPY ." copies only files of the commit.
	if ignores {
		ignore.Content += name + "\n"
		entries = append(entries, ignore)
	}
	entries = append(entries, dialect.Entry{Name: name, Content: string(w.Dockerfile), Mode: 0o644})
	archive, err := dialect.Pack(entries)
	return archive, name, err
}
