package hold

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// TakesOffError reports that a landing from another inner commit than main's would undo landed commits that the agent's main still has.
type TakesOffError struct {
	Commits []gitops.OID // a few of the landed commits, newest first
}

func (e *TakesOffError) Error() string {
	var names []string
	for _, id := range e.Commits {
		names = append(names, fmt.Sprintf("%.12s", id))
	}
	return "this would take landed commits off that the agent's main has: " + strings.Join(names, ", ")
}

// mainReader reads the inner main. The exporter of a promotion implements it.
type mainReader interface {
	Main(ctx context.Context) (gitops.OID, error)
	Resolve(ctx context.Context, name string) (gitops.OID, error)
	Count(ctx context.Context, want string, have ...string) (int, error)
}

// offNamed bounds the commits that a [TakesOffError] names, and offTried the landed commits that are tried for it.
const offNamed, offTried = 3, 100

// Apart counts the commits of the inner branch or commit from that the inner main does not have. A landing from there would undo the landed
// commits that it lacks. If main has some of these, so that the agent has not undone them, Apart returns a [TakesOffError].
func Apart(ctx context.Context, w mainReader, l *ledger.Ledger, from string) (apart int, err error) {
	main, err := w.Main(ctx)
	if err != nil || main == "" {
		return 0, err
	}
	tip, err := w.Resolve(ctx, from)
	if err != nil {
		return 0, err
	}
	if apart, err = w.Count(ctx, string(tip), string(main)); err != nil {
		return 0, err
	}
	only, err := w.Count(ctx, string(main), string(tip))
	if err != nil || only == 0 {
		return apart, err
	}
	lacks := func(landed ...gitops.OID) (bool, error) { // of what main has
		n, err := w.Count(ctx, string(main), append(gitops.Names(landed), string(tip))...)
		return n < only, err
	}
	if some, err := lacks(l.Tips()...); err != nil || !some {
		return apart, err
	}
	e := &TakesOffError{}
	for i, p := range slices.Backward(l.Landed) {
		if l.Superseded(p.Outer) {
			continue
		}
		lacking, err := lacks(p.Inner)
		if err != nil {
			return apart, err
		}
		if lacking {
			e.Commits = append(e.Commits, p.Outer)
		} else if len(e.Commits) > 0 {
			break
		}
		if len(e.Commits) == offNamed || len(l.Landed)-i == offTried {
			break
		}
	}
	if len(e.Commits) == 0 {
		return apart, nil
	}
	return apart, e
}
