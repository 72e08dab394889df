package hold

import (
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// InnerInvalid returns the hold for objects that the quarantine or the gate refused.
func InnerInvalid(cause *inner.Invalid) ledger.Hold {
	next := []string{"git airlock visit -- git fsck", "git airlock visit"}
	switch {
	case cause.For != "":
		next = []string{"git airlock visit -- rm -rf -- " + gitops.Pasteable(cause.For)}
	case cause.Stalled:
		next = next[1:]
	case cause.Setting != "":
		next = []string{settings + "--unset-all " + cause.Setting}
	case strings.Contains(cause.Reason, withoutRust):
		cause = cause.In(compatObjectFormat)
		next = withoutExtensions(cause.Reason)
	case slices.ContainsFunc(wrongExtension, func(said string) bool { return strings.Contains(cause.Reason, said) }):
		next = withoutExtensions(cause.Reason)
	}
	return ledger.Hold{Reason: ledger.InnerInvalid, Message: inOneLine.Replace(cause.Reason), Next: next}
}

// inOneLine joins the list after a message of git, which has one entry in a line.
var inOneLine = strings.NewReplacer(`:; \t`, ": ", `; \t`, ", ")

// compatObjectFormat is a setting that makes git look for a second id of each object.
const compatObjectFormat = "extensions.compatObjectFormat"

// withoutRust is git's error about compatObjectFormat if git was built without Rust (setup.c).
const withoutRust = "compatibility hash algorithm support requires Rust"

// wrongExtension has git's errors about extensions of the repository (setup.c): those of a newer git, those that a repository of version 0
// cannot have, and those with a value that git does not know. All of them name the extension. The last error is about the version.
var wrongExtension = []string{"unknown repository extension", "v1-only extension", "invalid value for 'extensions.", laterVersion}

const laterVersion = "Expected git repo version"

// settings begins a command on the settings of the inner repository. In a repository, git config reads the settings first, and some of the
// errors above end it. With this GIT_DIR, it is in no repository.
const settings = "git airlock visit -- env GIT_DIR=/ git config --file .git/config "

// withoutExtensions returns the commands after which the prison's git can read the inner repository. Refs in the format of a newer git than the
// prison's can be converted only by a git that knows it.
func withoutExtensions(reason string) (next []string) {
	for _, c := range []struct{ extension, command string }{
		{strings.ToLower(laterVersion), settings + "core.repositoryFormatVersion 1"},
		{"relativeworktrees", settings + "--unset-all extensions.relativeWorktrees"},
		{"compatobjectformat", settings + "--unset-all " + compatObjectFormat},
		{"refstorage", "git airlock visit  # there, with the git that the agent ran: git refs migrate --ref-format=files"},
		{"refstorage", settings + "--unset-all extensions.refStorage  # if .git/reftable has no refs"},
	} {
		if strings.Contains(strings.ToLower(reason), c.extension) {
			next = append(next, c.command)
		}
	}
	return append(next, settings+"--get-regexp '^extensions[.]'")
}

// refsShown bounds the refs in the message of a hold.
const refsShown = 10

// InnerMain returns the hold for a workspace without a branch main. refs are those that it has.
func InnerMain(refs []inner.Ref) ledger.Hold {
	h := ledger.Hold{Reason: ledger.InnerMain, Message: "the inner repository has no branch main"}
	if len(refs) == 0 {
		h.Message += ", and no other ref"
		return h
	}
	var shown []string
	for _, r := range refs[:min(len(refs), refsShown)] {
		shown = append(shown, gitops.Text(r.Name).String())
	}
	h.Message += "; it has " + strings.Join(shown, ", ")
	h.Next = []string{"git airlock visit -- git branch main " + gitops.Pasteable(refs[0].Name)}
	return h
}
