package attribute

import (
	"strings"
	"testing"
)

// FuzzParse looks for lines that are parsed twice, or beyond their end.
func FuzzParse(f *testing.F) {
	f.Add([]byte("*.bin filter=lfs -text\n\"a \\\"b\\101\" diff=x\n[attr]m x\n"))
	f.Add([]byte("\"\\"))
	f.Fuzz(func(t *testing.T, content []byte) {
		last := 0
		for _, l := range Parse(content, true) {
			if l.Number <= last || l.Pattern != "" && l.Macro != "" {
				t.Errorf("%+v", l)
			}
			last = l.Number
			for _, state := range l.States {
				if state == "" || strings.ContainsAny(state, space) {
					t.Errorf("%+v", l)
				}
			}
		}
	})
}
