package prison_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
)

// list is a writer that cannot be compared by ==.
type list []io.Writer

func (l list) Write(p []byte) (int, error) { return len(p), nil }

func TestMerged(t *testing.T) {
	one, other := &bytes.Buffer{}, &bytes.Buffer{}
	for what, c := range map[string]struct {
		out, err io.Writer
		want     bool
	}{
		"none": {nil, nil, false}, "one alone": {one, nil, false}, "two": {one, other, false}, "one twice": {one, one, true},
		"what cannot be compared": {list{}, list{}, false},
	} {
		if got := (prison.Process{Stdout: c.out, Stderr: c.err}).Merged(); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}

func TestIsVariableName(t *testing.T) {
	for name, want := range map[string]bool{
		"A": true, "_": true, "a1_B": true, "Z9": true,
		"": false, "1A": false, "A-B": false, "A B": false, "A\n": false, "\nA": false, "Ä": false, "A=": false, "A\x00": false, "a.b": false,
	} {
		if got := prison.IsVariableName(name); got != want {
			t.Errorf("IsVariableName(%q) = %t", name, got)
		}
	}
}
