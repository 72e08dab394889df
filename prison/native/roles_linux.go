package native

import (
	"github.com/git-airlock/git-airlock/prison/native/inside"
	"github.com/git-airlock/git-airlock/prison/native/usernet"
	"github.com/git-airlock/git-airlock/prison/native/wire"
)

// roles are the roles in which this program runs itself again.
var roles = map[string]wire.Role{
	wire.Keeper:  wire.Serve(keeperMain),
	wire.Builder: inside.Build,
	wire.Init:    inside.Serve,
	wire.Helper:  wire.Serve(helperMain),
	wire.Relay:   usernet.Confine,
}

// A role begins in the init function of this package, and not in main, in every program that imports this package.
// Packages are initialised in the order of their import paths as far as their own imports allow (Go spec, "Program
// initialization"). Three roles start one after the other before a prison runs, and only compiling the regular
// expressions for image names in the engine's client took each of them longer than the start of the runtime. For
// this package to be early, neither it nor its rooms may import packages that are initialised late: net, net/netip,
// regexp and runtime/debug.
func init() { wire.Begin(roles) }
