// Package attest makes the statements of an airlock about the commits that it has landed, see package evidence.
//
// It works after a landing, between two cycles, and from what the landing has left in the repository: the provenance
// note, the note about the network, and the results of checks. So a landing does not wait for a signature, and a process that was
// killed before it could sign leaves nothing half done: the next one finds the commits that have no statement yet.
package attest
