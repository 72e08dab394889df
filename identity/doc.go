// Package identity says who a commit claims to be by and who an agent runs as.
//
// A [Ghost] is the invented author of inner commits, a [Phantom] the uid and gid of an agent's
// processes, a [User] the author of landed commits. Beside them stand the names under which an
// airlock is found again: the workspace's and the session's. Everything invented here is random,
// looks ordinary, and says nothing of the host, its user, or this tool.
package identity
