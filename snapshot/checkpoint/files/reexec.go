package files

import (
	"fmt"
	"os"
)

// argument is the argument with which [Open] starts this program inside, before the path of the folder.
const argument = "serve-workspace"

// Reexec serves a folder and exits, if [Open] has started this process. A program that calls Open must call Reexec first.
func Reexec() {
	if len(os.Args) != 3 || os.Args[1] != argument {
		return
	}
	err := keepFromSignals()
	if err == nil {
		err = Serve(os.Args[2], os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:forbidigo // this process serves only a folder
	}
	os.Exit(0) //nolint:forbidigo // this process serves only a folder
}
