// Package review defines the user's verdicts on pending commits: their words, the lines that store them in notes, the
// commits that may land under them, and the commits that take over a verdict of another one. It reads no repository.
//
// A verdict is one JSON object on one line of refs/notes/airlock-review, so that two people's verdicts on one commit
// never conflict (notes.refs/notes/airlock-review.mergeStrategy=cat_sort_uniq in git-notes(1)). The airlock itself
// obeys the verdicts in its own state. From notes it takes only the verdicts of reviewers whom the team's policy names,
// since everybody who can push can write notes.
//
// # Amended commits
//
// An agent can amend or rebase a commit that has a verdict. The new commit takes over the verdict if it makes the same
// change with the same message, and if the old commit is gone. git patch-id(1) is not safe for this comparison: it
// ignores white space, which is code in Python and make, everything after a NUL byte in a line, and line numbers, so that it does
// not tell one of several equal blocks from another. [Digest] therefore compares all bytes of the diff and the message. It ignores
// line numbers and blob ids only in a file where each hunk fits a single place. The patch-id is stored for other programs.
package review
