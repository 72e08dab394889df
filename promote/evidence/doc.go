// Package evidence has statements about commits that an airlock landed, and verifies them.
//
// A [Statement] is an in-toto Statement v1. Its subjects are a landed commit and the tree of that commit. It says how the agent
// was kept in, what the gate found, who reviewed the commit, and what was reached over the network. An envelope of DSSE holds the
// statement and a signature of SSH (PROTOCOL.sshsig of OpenSSH), so that ssh-keygen(1) can verify it.
//
// An envelope is one line of the notes in [NotesRef], on the commit and on its tree. The note of a tree survives a squash, a rebase
// to the same tree and a cherry-pick to it. A statement also has the patch-id of the commit, which survives the others.
//
// The statements of a session are numbered from 1, and each has the SHA-256 of the envelope before it. A missing statement in the
// middle is therefore seen. The last statement of a session is a closing one with the count of the others, after which
// a missing statement at the end is seen, too.
//
// A statement is what the user's machine says about the agent. Who controls that machine can sign anything.
package evidence
