// Package replay makes the commits of a run again from its record. It never runs the agent.
//
// The record names the landed commits and their trees, and has their changes as mails. A commit that the repository has is
// copied into a quarantine, which computes all hashes again. A commit that it does not have is made from its mail, onto the
// commit before it. In both cases the tree must have the hash in the record.
//
// Then the commits are made on another commit, if one is wanted: with the author and the message that they had, and by the
// three-way merge of their change with the tree there, as a landing does. Without that, a commit that the repository has is
// made again as it was, so that it has the same name.
//
// A record may come from somebody else. The objects that it names are received like those of an agent, within the same bounds. A mail is applied
// in a quarantine that has no objects but the tree before it, so that the mail cannot name a private file.
package replay
