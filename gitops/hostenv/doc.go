// Package hostenv owns the environment that this program and everything it starts on the host run in.
//
// Whoever can commit can put files into the work tree. A program, library or configuration file that is found there was
// written by the agent, so nothing of the environment may lead there: no entry of PATH, no value of another variable.
// [Enter] cleans the environment of the process, before anything is looked up or started, and [Refresh] does so again in a
// daemon, which lives longer than the links around it. [Program] finds the programs that we call by name.
//
// The package knows the work trees from the file system alone: git itself is one of the programs that must not be found there.
package hostenv
