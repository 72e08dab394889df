package prisons

import (
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// TestUnknownNetwork checks that a record with an unknown network stands for a prison without one, and that no prison is started from it.
func TestUnknownNetwork(t *testing.T) {
	repo := &gitops.Repository{Top: t.TempDir(), CommonDir: t.TempDir()}
	p := Prisons{Repo: repo, Store: airlock.Open(repo)}
	r := airlock.Record{ID: "0001", Workspace: ".fox-0001"}
	for network, known := range map[string]bool{"none": true, "open": true, "": false, "anything": false} {
		r.Isolation.Network = network
		if got := p.Spec(r).Network; !known && got != prison.NetworkNone {
			t.Errorf("%q: the specification has the network %s", network, got)
		}
		if _, err := p.StartSpec(r, nil, nil, Watched{}); (err == nil) != known {
			t.Errorf("%q: a start: %v", network, err)
		}
	}
}
