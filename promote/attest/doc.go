// Package attest makes the statements of an airlock about the commits that it has landed, see package evidence.
//
// Statements are made after a landing, between two cycles. The facts in them come from the repository: the provenance note, the note about
// the network, and the results of checks. So a landing does not wait for a signature. If a process is killed before it has signed, nothing
// is half done: the next process finds the commits that have no statement yet.
package attest
