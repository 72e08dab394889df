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
//
// # When a commit is checked
//
// A commit is checked in its outer form, against its first parent, after it was built in the bridge
// and before the outer repository gets it. A refused commit (git-path) never gets there. A held one
// does, as pending, where plain git can show it. One git cat-file --batch-command answers all
// questions of a cycle. A merge is checked against its first parent: its other parents' changes are
// new to the branch.
//
// Verdicts are kept under a fingerprint of all that the gate goes by: git configuration, policies,
// acceptances. With another fingerprint, waiting commits are checked again. So a changed setting is
// obeyed at once, and an idle cycle costs nothing.
//
// Acceptances and drops name inner commits, since an outer one is made again whenever the branch
// moves. An acceptance covers what was visible: --accept secret is no permission for the next secret,
// nor for an amended commit. A dropped commit has the image of its first parent; its successor is
// merge(tree(p1); tree(p1) without it, tree(c)), and the hold conflict names a commit that does not
// merge. The links of pending commits are ordered so that a commit of the first-parent history reaches
// all that comes before it. Otherwise landing half of a plan would take commits of a side branch for
// landed.
//
// # Secrets
//
// The rule file of gitleaks is embedded unchanged; the machine that runs it is ours. As a library
// gitleaks brings 57 modules, among them a decompressor for each archive format, into a place that
// reads hostile bytes, and doubles the program. An expression is matched only near one of its rule's
// words: 3 MB of minified JavaScript take 1 s instead of 25. Lines around an added line are searched
// with it, since a key may be put between a first and a last line that exist; a match that does not
// reach into an added line is not reported. Files that gitleaks excuses by name stay excused.
//
// # False alarms
//
// Commits held/only flagged, defaults with git-lfs configured, newest commits that are no merges
// (scripts/alarms):
//
//	               age    tldr  libgit2  git   symfony  fzf   jq     babel  held
//	commits        381    1000  1000     1000  1000     1000  1000   1000   of 7381
//	secret         32/21  0     0/1      0     1/1      0     0      0/5    0.45 %
//	embedded-repo  0      0     10       0     0        0     0      0      0.14 %
//	submodule      0      0     1        0     0        0     8      0      0.12 %
//	agent-config   0      0/2   0        0/5   0        0     0      0/1    0
//	host-exec      0/47   0/13  0/88     0/16  0/14     0/50  0/107  0/105  0
//	hidden-text    0/4    0     0/3      0     0/1      0/1   0      0      0
//	any other      0      0     0        0     0        0     0      0      0
//	any            32     0     10       0     1        0     8      0      0.69 %
//
// The held ones are right: private keys in age's tests, repositories in libgit2's tests, submodules in
// jq. A project about keys will want airlock.policy.secret=flag, or accept secret:testdata/.
//
// The gate takes 1.0 (fzf) to 2.7 ms (symfony) of processor time a commit, git included; babel, whose
// commits carry bundled programs of megabytes, 18 ms.
//
// Names that are not UTF-8 (macOS) or have <>"|?* (Windows) are flagged and not held, since no other
// name is taken for them. A colon is held: it leads to a drive or a hidden stream.
package policy
