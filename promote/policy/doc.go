// Package policy is the gate that looks at every outer-ready commit before it lands.
//
// A [Gate] holds a list of rules. Each rule looks at a [Commit], all of which an agent wrote, for one kind of
// harm, and reports paths. What a rule reports either holds the commit (it waits as pending, with all that
// builds on it) or flags it (it lands, and its note says so). Which of both is the user's [Settings], which a
// [Team] policy can make stricter and never looser.
//
// Two kinds of harm are looked for: what would make the user's next ordinary command run the agent's
// code (links, drivers, repositories inside the repository, settings of editors and agents), and what would
// be hard to take back or to see once it has landed (secrets, invisible text, names that other file systems
// cannot hold). Only what a commit changes is looked at: what the user's branch has already is
// the user's business, so time grows with the changes and not with the repository.
//
// A gate is not a review. Code that the user builds or runs can do whatever it likes, and a secret can be encoded
// so that no rule finds it.
//
// Nothing here writes or runs a process: a gate sees git objects through [Objects] and nothing else, but for where
// the user's own settings lead.
package policy
