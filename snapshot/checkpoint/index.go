package checkpoint

import (
	"bufio"
	"encoding/gob"
	"errors"
	"os"
	"path/filepath"

	"github.com/git-airlock/git-airlock/snapshot/checkpoint/files"
)

// index remembers the contents of the last checkpoint, so that unchanged files need not be read again.
type index struct {
	number int
	files  map[string]*node
	ids    map[oid]bool // all objects of the checkpoint
}

const (
	indexName    = "stats" // git has an index of its own in a repository
	indexVersion = 1
)

// indexHeader is the first value in the file.
type indexHeader struct {
	Version, Number int
	Objects         []oid
}

// indexed is a regular file in the file.
type indexed struct {
	Path       string
	Stat       files.Stat
	Blob       oid
	Settled    bool
	Attributes bool
}

func (i *index) at(path string) *node { return i.files[path] }

func (i *index) known() map[oid]bool {
	if i.ids == nil {
		return map[oid]bool{}
	}
	return i.ids
}

// readIndex reads the index. A missing, broken or outdated one is empty: then all files are read.
func (s *Store) readIndex() *index {
	empty := &index{}
	f, err := os.Open(filepath.Join(s.dir, indexName))
	if err != nil {
		return empty
	}
	defer f.Close()
	var header indexHeader
	var list []indexed
	d := gob.NewDecoder(bufio.NewReaderSize(f, 1<<20))
	if err := errors.Join(d.Decode(&header), d.Decode(&list)); err != nil || header.Version != indexVersion {
		return empty
	}
	if last, err := s.last(); err != nil || last != header.Number {
		return empty
	}
	i := &index{number: header.Number, files: make(map[string]*node, len(list)), ids: make(map[oid]bool, len(header.Objects))}
	for _, e := range list {
		i.files[e.Path] = &node{Stat: e.Stat, blob: e.Blob, settled: e.Settled, attributes: e.Attributes}
		i.ids[e.Blob] = true
	}
	for _, id := range header.Objects {
		i.ids[id] = true
	}
	return i
}

// writeIndex replaces the index. objects are those of the checkpoint, except the contents of files.
func (s *Store) writeIndex(number int, top *node, objects []oid) error {
	header := indexHeader{Version: indexVersion, Number: number, Objects: objects}
	var list []indexed
	for path, n := range top.all() {
		if n.kind == files.Regular {
			list = append(list, indexed{path, n.Stat, n.blob, n.settled, n.attributes})
		}
	}
	f, err := os.CreateTemp(s.dir, "tmp_index_")
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	e := gob.NewEncoder(w)
	err = errors.Join(e.Encode(header), e.Encode(list), w.Flush(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(s.dir, indexName))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
