package recipe

import (
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// lines tells in which line each key of a document is, by its path. Decoding forgets it.
type lines map[string]int

// pathOf joins the parts of a key. A part can hold dots, but not this.
func pathOf(parts ...string) string { return strings.Join(parts, "\x00") }

// findLines reads a document that is known to be one.
func findLines(content []byte) lines {
	found := lines{}
	var p unstable.Parser
	p.Reset(content)
	var table []string
	for p.NextExpression() {
		switch e := p.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = found.add(&p, nil, e.Key())
		case unstable.KeyValue:
			found.value(&p, table, e)
		}
	}
	return found
}

func (l lines) value(p *unstable.Parser, above []string, e *unstable.Node) {
	path := l.add(p, above, e.Key())
	if v := e.Value(); v.Kind == unstable.InlineTable {
		for it := v.Children(); it.Next(); {
			l.value(p, path, it.Node())
		}
	}
}

// add notes where a key is, and where those above it are seen first.
func (l lines) add(p *unstable.Parser, above []string, key unstable.Iterator) []string {
	path := above[:len(above):len(above)]
	for key.Next() {
		n := key.Node()
		path = append(path, string(n.Data))
		if at := pathOf(path...); l[at] == 0 {
			l[at] = p.Shape(n.Raw).Start.Line
		}
	}
	return path
}

// of is the line of a key, or of the nearest above it.
func (l lines) of(path []string) int {
	for n := len(path); n > 0; n-- {
		if line := l[pathOf(path[:n]...)]; line > 0 {
			return line
		}
	}
	return 0
}
