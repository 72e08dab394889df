package main_test

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// source is one Go file of this module, whatever its build tags.
type source struct {
	name  string // slash-separated, from the top
	lines int
	*ast.File
}

func (s source) test() bool     { return strings.HasSuffix(s.name, "_test.go") }
func (s source) folder() string { return path.Dir(s.name) }

// sources returns the Go files of this module.
func sources(t *testing.T) []source {
	t.Helper()
	all, err := parse()
	if err == nil && len(all) == 0 {
		err = errors.New("no Go files found")
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// parse parses the Go files of this module. Many tests read them.
var parse = sync.OnceValues(func() (all []source, err error) {
	const top = "../.."
	err = filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() && name != top && (base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")) {
			return fs.SkipDir
		}
		if d.IsDir() || filepath.Ext(base) != ".go" {
			return nil
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, content, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, name)
		all = append(all, source{filepath.ToSlash(rel), bytes.Count(content, []byte("\n")), file})
		return err
	})
	return all, err
})
