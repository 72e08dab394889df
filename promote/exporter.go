package promote

import (
	"context"
	"io"

	"github.com/git-airlock/git-airlock/gitops"
)

// Exporter is how refs and packs come out of a workspace. Everything it returns was written by an agent. An
// error that is a [gitops.Invalid] says what is wrong inside; any other, that looking failed.
type Exporter interface {
	// Branches lists the inner refs that match the patterns (all branches without any), at most 1,000.
	Branches(ctx context.Context, patterns ...string) ([]gitops.InnerRef, error)
	// Main is the tip of the inner main, empty if there is none.
	Main(ctx context.Context) (gitops.OID, error)
	// Resolve is the commit an inner branch or revision stands for.
	Resolve(ctx context.Context, name string) (gitops.OID, error)
	// Count counts the commits reachable from want and from none of have.
	Count(ctx context.Context, want string, have ...string) (int, error)
	// Uncommitted counts the paths changed and not committed.
	Uncommitted(ctx context.Context) (int, error)
	// Usage measures the workspace and the agent's home. With an error, it is what could be measured, if anything, which is not the whole.
	Usage(ctx context.Context) (gitops.Usage, error)
	// Pack writes what want reaches and none of have does.
	Pack(ctx context.Context, want gitops.OID, have []gitops.OID, out io.Writer) error
	// FirstParents lists the first-parent history of want down to have, the oldest commit first.
	FirstParents(ctx context.Context, want gitops.OID, have []gitops.OID) ([]gitops.OID, error)
	// PathOf returns a path at which a commit has an object, empty if it has none.
	PathOf(ctx context.Context, commit, object gitops.OID) (string, error)
	// CheckSizes refuses what Pack would write by the sizes that are said inside of what is in it, which takes less time.
	CheckSizes(ctx context.Context, want gitops.OID, have []gitops.OID, limits gitops.Limits) error
	// Watch sends whenever the inner refs may have changed, until ctx ends.
	Watch(ctx context.Context) (<-chan struct{}, error)
	// Close ends everything the exporter started.
	Close() error
}
