// Package hostenv owns the environment that this program and everything it starts on the host run in.
//
// Whoever can commit can put files into the work tree. A program, library or configuration file that is found there was
// written by the agent, so nothing of the environment may lead there: no entry of PATH, no value of another variable.
// [Enter] cleans the environment of the process, before anything is looked up or started, and [Refresh] does so again in a
// daemon, which lives longer than the links around it. [Program] finds the programs that we call by name.
//
// HOME, XDG_CONFIG_HOME, GIT_CONFIG_GLOBAL and GIT_CONFIG_SYSTEM are an exception. They may lead into the work tree: some homes are work trees, and
// some users keep their settings in a repository. Without these variables, commits would have no author, and the settings of the policy gate
// would be lost. The gate guards the files instead: the rule user-driver holds each commit that changes a file from which git reads settings or
// hooks, or a link on the way to it.
//
// The package finds the work trees without git, from the file system alone, because git is one of the programs that must not be started from
// there.
package hostenv
