// Package evidence defines signed statements about commits that an airlock landed, and verifies them.
//
// A [Statement] is an in-toto Statement v1. Its subjects are a landed commit and the tree of that commit. It describes the prison, the findings of
// the gate, the reviewers of the commit, and the hosts that were reached over the network. An envelope of DSSE holds the statement and a
// signature of SSH (PROTOCOL.sshsig of OpenSSH), so that ssh-keygen(1) can verify it.
//
// An envelope is one line of the notes in [NotesRef], on the commit and on its tree. The note of a tree survives a squash, a rebase
// to the same tree and a cherry-pick to it. A statement also has the patch-id of the commit, which survives the others.
//
// The statements of a session are numbered from 1, and each has the SHA-256 of the envelope before it. So a verifier sees if a statement in the
// middle is missing. The last statement of a session is a closing one with the number of the others, so that a verifier also sees if a statement
// at the end is missing.
//
// The user's machine makes the statements. Whoever controls that machine can sign anything.
package evidence
