package gitops

import (
	"bytes"
	"strings"
	"testing"
)

func FuzzParseTree(f *testing.F) {
	f.Add([]byte("100644 a\x00"+strings.Repeat("h", 20)), false)
	f.Add([]byte("40000 d\x00"+strings.Repeat("h", 32)), true)
	f.Add([]byte("40000 d"), true)
	f.Fuzz(func(t *testing.T, content []byte, long bool) {
		hash := 20
		if long {
			hash = 32
		}
		entries, err := ParseTree(content, hash)
		if err != nil {
			return
		}
		again, err := TreeBytes(entries)
		if err != nil || !bytes.Equal(again, content) {
			t.Errorf("%q is written as %q, %v", content, again, err)
		}
	})
}
