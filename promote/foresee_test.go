package promote_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// endless is an exporter whose git never ends.
type endless struct {
	exporter
	packs *int
}

func (x endless) Pack(ctx context.Context, _ gitops.OID, _ []gitops.OID, _ io.Writer) error {
	*x.packs++
	<-ctx.Done()
	return ctx.Err()
}

// TestExportIsForeseen checks that a tip that is too large is refused before it has been copied completely, and not
// exported again until the tip or the limits change.
func TestExportIsForeseen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sha1", tree{"a": plain("1")})
	packs := 0
	w.engine.Open = func(context.Context) (promote.Exporter, error) { return endless{workspace(w.inner), &packs}, nil }
	w.git("config", "airlock.limit.blob", "4k")
	w.commits("big", "big", strings.Repeat("0", 5000))
	for range 3 {
		begun := time.Now()
		o := w.cycle()
		if len(o.Holds) != 1 || o.Holds[0].Reason != ledger.InnerInvalid || !strings.Contains(o.Holds[0].Message, "airlock.limit.blob") {
			t.Fatalf("holds %+v", o.Holds)
		}
		if took := time.Since(begun); took > patience {
			t.Errorf("held after %s", took)
		}
	}
	if packs != 1 {
		t.Errorf("exported %d times", packs)
	}
	w.git("config", "airlock.limit.blob", "8k")
	w.engine.Open = func(context.Context) (promote.Exporter, error) { return workspace(w.inner), nil }
	check(t, w.engine.Close())
	if o := w.cycle(); o.Landed != 1 {
		t.Errorf("not landed although it is allowed now: %+v", o.Holds)
	}
}
