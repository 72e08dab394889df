// Package gitops is the only door to git.
//
// [Git] runs the git program with an environment that contains only what the caller passed. [Repository] is the
// user's outer repository. It is trusted, and read with the same configuration that the user's own git reads.
//
// Package inner drives a git program inside a prison, through a function that the caller passes. No function in these packages opens a workspace
// as a repository. Package ignore reads ignore rules and the patterns of attributes. Package quarantine holds the objects that an agent wrote, and
// hands accepted objects to the outer repository. Package land moves a branch, its index and its working tree in one journaled step. Package
// durable writes files so that they survive a power loss.
//
// Methods called Look only read. Methods called Change change something, and fail on a Git that was opened for a dry run.
package gitops
