package recipe

import (
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// lines maps the path of each key to its line in the document. The decoder does not return lines.
type lines map[string]int

// pathOf joins the parts of a key. A part can contain dots, but no zero byte.
func pathOf(parts ...string) string { return strings.Join(parts, "\x00") }

// findLines finds the lines of the keys of a valid document.
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

// add records the line of a key, and of the tables above it that occur for the first time.
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

// of returns the line of a key, or of the nearest table above it.
func (l lines) of(path []string) int {
	for n := len(path); n > 0; n-- {
		if line := l[pathOf(path[:n]...)]; line > 0 {
			return line
		}
	}
	return 0
}
