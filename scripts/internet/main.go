// Command internet makes the world of package internet in a folder, as root, until its standard input ends.
//
//	internet FOLDER
//	internet serve FOLDER
//
// With serve, it is the servers of one of the two namespaces. The program FOLDER/host runs another one in the namespace that plays
// this machine. When the file FOLDER/bundle.pem is there, all servers listen. No other program holds any of it.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/git-airlock/git-airlock/prison/prisontest/internet"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		internet.Serve(os.Args[2])
	}
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: internet FOLDER")
		os.Exit(2)
	}
	program, err := os.Executable()
	if err == nil {
		err = run(os.Args[1], program)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "internet:", err)
		os.Exit(1)
	}
}

// run has a world until the input ends.
func run(folder, program string) error {
	w, err := internet.Make(folder, program, "serve")
	if err == nil {
		_, err = io.Copy(io.Discard, os.Stdin)
	}
	w.Close()
	return err
}
