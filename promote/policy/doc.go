// Package policy is the gate that checks every outer commit before it lands.
//
// A [Gate] has a list of rules. Each rule checks a [Commit] for one kind of harm and reports paths. An agent wrote
// everything in the commit. A finding either holds the commit or flags it. A held commit waits as pending, with all
// commits that build on it. A flagged commit lands, and its note names the rule. The user's [Settings] choose the
// action, and a [Team] policy can only make it stricter.
//
// The rules look for two kinds of harm. The first makes the user's next ordinary command run the agent's code: links,
// drivers, repositories inside the repository, settings of editors and agents. The second is hard to undo or to see
// once it has landed: secrets, invisible text, names that other file systems cannot store. The gate checks only the
// changes of a commit. The previous content of the branch is the user's business, so the time grows with the changes
// and not with the repository.
//
// A rule that goes by the name of a path checks a changed path also under its other names through the links of the tree
// (package treelink): with a link .mcp.json in the tree, a change of the file to which it leads is a change of .mcp.json. So
// the gate reads all folders of the first tree that it checks, and afterwards only those that a commit changes.
//
// A gate does not replace a review. Code that the user builds or runs can do anything, and a secret can be encoded so
// that no rule finds it.
//
// The package changes nothing. A gate reads git objects through [Objects], and otherwise only the places to which the
// user's own settings lead. One rule runs git in a temporary folder, to find out whether git would ignore the workspace.
//
// # When a commit is checked
//
// A commit is checked in its outer form, against its first parent, after it was built in the bridge and before the
// outer repository gets it. A refused commit (git-path) never gets there. A held commit does, as pending, where plain
// git can show it. One git cat-file --batch-command process answers all requests of a cycle. A merge is checked
// against its first parent: the changes of its other parents are new to the branch.
//
// Results are stored with a fingerprint of the gate's input: git configuration, policies, acceptances. If the
// fingerprint changes, waiting commits are checked again. So a changed setting takes effect at once, and an idle
// cycle costs nothing.
//
// Acceptances and drops name inner commits, since an outer commit is built again whenever the branch moves. An
// acceptance covers the findings that were visible: --accept secret does not accept the next secret, nor an amended
// commit. A hold prints a command that names the commit, since the agent can amend it between that output and the
// command. A dropped commit has the image of its first parent. The tree of its successor is merge(base: tree(p1),
// ours: tree(p1) without the dropped changes, theirs: tree(c)), and the hold "conflict" names a commit that does not
// merge. The links of pending commits are ordered so that a commit of the first-parent history reaches all commits
// before it. Otherwise, landing half of a plan would count commits of a side branch as landed.
//
// # Secrets
//
// The rule file of gitleaks is embedded unchanged, and our own code applies it. As a library, gitleaks brings 57
// modules into a place that reads hostile bytes, among them a decompressor for each archive format, and doubles the
// program's size. An expression is matched only near one of its rule's keywords: 3 MB of minified JavaScript take 1 s
// instead of 25. The lines around an added line are searched with it, since a key may be inserted between an existing
// first and last line. A match that does not reach into an added line is not reported. Files that gitleaks allows by
// name stay allowed.
//
// Content with a few NULs, or with a name that is not one of a binary format, is searched like text, without its NULs:
// one NUL makes git show no diff, and interpreters do not mind it. See the package filekind.
//
// # Bytes on the disk
//
// Rules read blobs. Git writes other bytes to the disk if the attribute working-tree-encoding or ident is in effect. If
// a rule reads a file's content or finds it by its name, the rule also reports a commit that changes the file, or the
// attributes that apply to it, so that git converts it. The attributes in effect are those of the landed tree and of the
// user's own attribute files. For other files, hidden-text flags a charset that does not keep ASCII as it is, eol=crlf for
// shell scripts, and a text that ident would replace, whether or not the attribute is set: another commit can set it.
// It also flags merge=union, by which git merges the user's lines and the agent's without a conflict.
//
// # Slow patterns
//
// Git's time for a pattern with many stars grows exponentially with their number. Such a pattern in a .gitattributes file
// keeps the landing itself at work, and one in a .gitignore file the user's next git status. The rule slow-pattern holds
// a file if an upper bound of git's steps for one path is too large ([ignore.Steps]). The bound counts the stars and
// does not depend on the paths in the tree, since another commit can add the path. Git's time below the limit still grows with the number of paths, so the rule also holds a file
// whose patterns take too long with all paths that the same commit changes.
//
// # Time and memory
//
// Git trusts some numbers in files of the tree. The attribute conflict-marker-size makes git merge write past its memory, a chain
// of macros overflows the stack of every git command, and many addresses in .mailmap keep git log at work. Git keeps the names
// of all attributes that it has read, so those of different files are added up. The rule git-resources holds such a file.
// The package cost has the limits, and what git needs beyond them.
//
// # False alarms
//
// Commits held/only flagged, with the defaults and git-lfs configured, over the newest commits that are not merges
// (scripts/alarms):
//
//	               age    tldr  libgit2  git   symfony  fzf   jq     babel  held
//	commits        381    1000  1000     1000  1000     1000  1000   1000   of 7381
//	secret         33/21  0     0/1      0     1/1      0     0      0/5    0.46 %
//	embedded-repo  0      0     10       0     0        0     0      0      0.14 %
//	submodule      0      0     1        0     0        0     8      0      0.12 %
//	agent-config   0      0/2   0        0/5   0        0     0      0/1    0
//	host-exec      0/47   0/13  0/88     0/16  0/14     0/50  0/107  0/105  0
//	hidden-text    0/13   0     0/3      0     0/1      0/1   0      0      0
//	any other      0      0     0        0     0        0     0      0      0
//	any            33     0     10       0     1        0     8      0      0.70 %
//
// The held commits are true positives: private keys in age's tests, repositories in libgit2's tests, submodules in
// jq. A project about keys will want airlock.policy.secret=flag, or accept secret:testdata/. Most flags of hidden-text in age are
// control characters in encrypted test data, which git shows as text.
//
// The gate takes 1.0 (fzf) to 2.7 ms (symfony) of processor time a commit, git included. For babel, whose commits
// contain bundled programs of megabytes, it takes 18 ms.
//
// Names that are not UTF-8 (macOS) or contain <>"|?* (Windows) are flagged and not held, since they cannot be
// confused with other names. A colon is held, because it leads to a drive or a hidden stream.
package policy
