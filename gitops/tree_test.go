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

// The stages of a cycle parse each changed tree of each commit, so that an allocation for each entry would cost much.
func TestParseTreeAllocatesTheSameForAnyTree(t *testing.T) {
	for _, count := range []int{1, 1000} {
		content := bytes.Repeat([]byte("100644 a\x00"+strings.Repeat("h", 20)), count)
		got := testing.AllocsPerRun(10, func() {
			if entries, err := ParseTree(content, 20); err != nil || len(entries) != count {
				t.Errorf("%d entries, %v, want %d", len(entries), err, count)
			}
		})
		if got > 3 {
			t.Errorf("%d entries take %v allocations, want the entries, their text and their hashes", count, got)
		}
	}
}
