// Package identity makes the names and ids of an airlock: the author of commits, the agent's user id, the workspace.
// Begin reading at [NewGhost], [NewPhantom] and [ResolveUser].
//
// A [Ghost] is the invented author of inner commits. A [Phantom] is the uid and gid of an agent's processes. A [User]
// is the author of landed commits. The package also makes the names by which an airlock is found again: those of its
// workspace and its session. Everything invented here is random, looks ordinary, and reveals nothing about the host,
// its user, or this tool.
package identity
