package pause

import (
	"errors"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/land"
)

// TestFilterPause counts how often a landing is tried in a day, if its filter fails and the daemon checks once a
// second.
func TestFilterPause(t *testing.T) {
	var p Filter
	failed := &land.FilterError{}
	begin, tries := time.Unix(0, 0), 0
	config := gitops.Config{"a.b": "c"}
	for s := range 24 * 60 * 60 {
		now := begin.Add(time.Duration(s) * time.Second)
		if !p.Pauses(now, config) {
			tries++
			p = p.After(failed, now, config)
		}
	}
	if tries > 40 || tries < 20 {
		t.Errorf("%d tries in a day", tries)
	}
	if p.Pauses(begin, gitops.Config{}) {
		t.Error("a change of the configuration does not end the pause")
	}
	if p = p.After(errors.New("x"), begin, config); p.Err != nil {
		t.Error("another error counts as a filter's error")
	}
}
