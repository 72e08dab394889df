package operation

import (
	"context"
	"fmt"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
)

// Append makes the commit of an operation that follows the newest one, tip, which is empty if there is none. who is its
// author. The commit is the tip of the chain once the caller has given it to the repository and moved the ref.
func Append(ctx context.Context, b *quarantine.Bridge, look *quarantine.Inspector, tip gitops.OID, o Operation, who string) (gitops.OID, error) {
	var last Operation
	if tip != "" {
		var err error
		if last, err = read(ctx, look, tip); err != nil {
			return "", err
		}
	}
	after, err := look.Commit(ctx, o.After)
	if err != nil {
		return "", err
	}
	c, err := Next(last, o).Commit(after.Tree, who)
	return b.Make("commit", c.Bytes()), err
}

// Read returns the chain whose newest operation is tip. It is empty if tip is.
func Read(ctx context.Context, look *quarantine.Inspector, tip gitops.OID) (Chain, error) {
	var c Chain
	for id := tip; id != ""; {
		o, err := read(ctx, look, id)
		if err != nil {
			return nil, err
		}
		if len(c) > 0 && o.Number >= c[len(c)-1].Number {
			return nil, fmt.Errorf("read operation %s: its number %d is not below the next one's", id, o.Number)
		}
		c, id = append(c, o), o.Previous
	}
	slices.Reverse(c)
	return c, nil
}

func read(ctx context.Context, look *quarantine.Inspector, id gitops.OID) (Operation, error) {
	c, err := look.Commit(ctx, id)
	if err != nil {
		return Operation{}, fmt.Errorf("read operation %s: %w", id, err)
	}
	return Parse(id, c)
}
