package inside

import (
	"os"

	"github.com/git-airlock/git-airlock/prison/hosttree"
)

// EmptyProgram is the path of this program in an image that has nothing else. Under this name, the program removes everything in the
// folder that is its argument: see [Reexec].
const EmptyProgram = "/remove-content"

// empty removes everything in a folder. The folder itself stays if it is a mount point. The caller on the host checks the result, since
// only the caller can print why something stays.
func empty(folder string) {
	_ = hosttree.Remove(folder)
	os.Exit(0) //nolint:forbidigo // this process only removes files
}
