package main_test

import (
	"go/ast"
	"strings"
	"testing"
)

// TestNothingIsCompiledAtStart checks that no variable of a package is a compiled expression or template. Every start of the
// program would pay for it, whatever the command: 30 of them took 2 ms.
func TestNothingIsCompiledAtStart(t *testing.T) {
	for _, f := range sources(t) {
		if f.test() || strings.HasPrefix(f.name, "scripts/") {
			continue
		}
		for _, d := range f.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			ast.Inspect(group, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncLit: // it runs when it is called
					return false
				case *ast.SelectorExpr:
					if of, ok := n.X.(*ast.Ident); ok && (of.Name == "regexp" || of.Name == "template") && strings.HasPrefix(n.Sel.Name, "Must") {
						t.Errorf("%s: %s.%s in a variable of the package; use sync.OnceValue", f.name, of.Name, n.Sel.Name)
					}
				}
				return true
			})
		}
	}
}
