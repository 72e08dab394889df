package hold

import (
	"slices"
	"testing"

	"github.com/git-airlock/git-airlock/gitops/inner"
)

// TestNewerGit checks the next commands for an inner repository that only a newer git can read.
func TestNewerGit(t *testing.T) {
	t.Parallel()
	const list = "git airlock visit -- git config --file .git/config --get-regexp '^extensions[.]'"
	for reason, want := range map[string][]string{
		`git for-each-ref in the workspace: fatal: unknown repository extension found:; \trelativeworktrees`: {
			"git airlock visit -- git config --file .git/config --unset extensions.relativeWorktrees", list},
		`fatal: unknown repository extensions found:; \trefstorage; \trelativeworktrees`: {
			"git airlock visit -- git config --file .git/config --unset extensions.relativeWorktrees",
			"git airlock visit  # there, with the git that the agent ran: git refs migrate --ref-format=files",
			"git airlock visit -- git config --file .git/config --unset extensions.refStorage  # if .git/reftable has no refs", list},
		`fatal: unknown repository extension found:; \tother`: {list},
		"broken object": {"git airlock visit -- git fsck", "git airlock visit"},
	} {
		if next := InnerInvalid(&inner.Invalid{Reason: reason}).Next; !slices.Equal(next, want) {
			t.Errorf("%s: %q", reason, next)
		}
	}
	const lists = `fatal: unknown repository extensions found:; \trefstorage; \tother`
	if said := InnerInvalid(&inner.Invalid{Reason: lists}).Message; said != "fatal: unknown repository extensions found: refstorage, other" {
		t.Error(said)
	}
}
