package hold

import (
	"slices"
	"testing"

	"github.com/git-airlock/git-airlock/gitops/inner"
)

// TestNewerGit checks the messages and next commands for an inner repository that only another git, or none, can read.
func TestNewerGit(t *testing.T) {
	t.Parallel()
	const set = "git airlock visit -- env GIT_DIR=/ git config --file .git/config "
	const list = set + "--get-regexp '^extensions[.]'"
	const compat, refs, migrate = set + "--unset-all extensions.compatObjectFormat", set + "--unset-all extensions.refStorage  # if .git/reftable has no refs",
		"git airlock visit  # there, with the git that the agent ran: git refs migrate --ref-format=files"
	for reason, want := range map[string][]string{
		`git for-each-ref in the workspace: fatal: unknown repository extension found:; \trelativeworktrees`:            {set + "--unset-all extensions.relativeWorktrees", list},
		`fatal: unknown repository extensions found:; \trefstorage; \trelativeworktrees`:                                {set + "--unset-all extensions.relativeWorktrees", migrate, refs, list},
		`fatal: unknown repository extension found:; \tother`:                                                           {list},
		`fatal: unknown repository extension found:; \tcompatobjectformat`:                                              {compat, list},
		`fatal: repo version is 0, but v1-only extension found:; \tcompatobjectformat`:                                  {compat, list},
		`error: invalid value for 'extensions.compatobjectformat': 'md5'; fatal: bad config line 7 in file .git/config`: {compat, list},
		`git for-each-ref in the workspace: fatal: compatibility hash algorithm support requires Rust`:                  {compat, list},
		`fatal: Expected git repo version <= 1, found 2`:                                                                {set + "core.repositoryFormatVersion 1", list},
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
	const rust = "git for-each-ref in the workspace: fatal: compatibility hash algorithm support requires Rust"
	if said := InnerInvalid(&inner.Invalid{Reason: rust}).Message; said != "extensions.compatObjectFormat: "+rust {
		t.Error(said)
	}
	elsewhere := InnerInvalid(&inner.Invalid{Reason: "extensions.refStorage is elsewhere", Setting: "extensions.refStorage"})
	if !slices.Equal(elsewhere.Next, []string{set + "--unset-all extensions.refStorage"}) {
		t.Error(elsewhere)
	}
}
