package main_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEscapingHasOneRoom checks that nothing escapes text by a call: package gitops does it in the type gitops.Text.
func TestEscapingHasOneRoom(t *testing.T) {
	calls := map[string]int{}
	for _, f := range sources(t) {
		ast.Inspect(f.File, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && !f.test() {
				if name := calledName(call); name == "escape" || name == "Escape" {
					calls[f.name]++
				}
			}
			return true
		})
	}
	for name := range calls {
		if path.Dir(name) != "gitops" {
			t.Errorf("%s escapes text; gitops.Text does that", name)
		}
	}
	if calls["gitops/text.go"] == 0 {
		t.Error("gitops.Text does not escape")
	}
}

// calledName returns the name of a called function without its package.
func calledName(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// maxFunction is the maximum number of lines of a function. A longer one does not fit on a screen.
const maxFunction = 60

// tables are the functions that may be longer, because each consists of the rows of one table.
var tables = map[string]bool{"prison/selftest probes": true, "prison/prisontest actions": true}

// TestFunctionLength checks the length of functions.
func TestFunctionLength(t *testing.T) {
	long := 0
	for _, f := range sources(t) {
		if f.test() {
			continue
		}
		content, err := os.ReadFile("../../" + f.name)
		if err != nil {
			t.Fatal(err)
		}
		positions := token.NewFileSet()
		file, err := parser.ParseFile(positions, f.name, content, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			fun, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			lines := positions.Position(fun.End()).Line - positions.Position(fun.Pos()).Line + 1
			switch {
			case lines <= maxFunction:
			case tables[f.folder()+" "+fun.Name.Name]:
				long++
			default:
				t.Errorf("%s: %s has %d lines; at most %d", f.name, fun.Name.Name, lines, maxFunction)
			}
		}
	}
	if long != len(tables) {
		t.Errorf("%d of %d tables are long", long, len(tables))
	}
}

// TestReadingTheCode checks that the documentation of the program names each command and each folder below internal.
func TestReadingTheCode(t *testing.T) {
	var text string
	var wanted []string
	for _, f := range sources(t) {
		if f.folder() == command {
			text += f.Doc.Text()
		}
		wanted = append(wanted, commandsIn(f)...)
		if room, ok := strings.CutPrefix(f.folder(), commandsRoom+"/"); ok {
			wanted = append(wanted, room)
		} else if room, ok := strings.CutPrefix(f.folder(), command+"/internal/"); ok {
			wanted = append(wanted, "internal/"+room)
		}
	}
	_, text, _ = strings.Cut(text, "# Reading the code")
	text, _, _ = strings.Cut(text, "# Settings")
	slices.Sort(wanted)
	for _, name := range slices.Compact(wanted) {
		if !regexp.MustCompile(`(^|[^/\w])` + name + `([^/\w]|$)`).MatchString(text) {
			t.Errorf("doc.go does not name %s", name)
		}
	}
}
