// Package gitops is the only door to git.
//
// [Git] runs the git program with an environment that obeys nothing but what the
// caller asked for. [Repository] is the user's outer repository; it is trusted and
// seen as its user's own git sees it. [Quarantine] is a bare host-owned repository for
// objects an agent wrote. [Workspace] drives a git program *inside* a prison through a
// function the caller gives; no function here ever opens a workspace as a repository.
// [Repository.Land] moves a branch, its index and its working tree in one journaled step.
//
// Methods called Look only look. Methods called Change change something and are refused
// on a Git that was opened for a dry run.
package gitops
