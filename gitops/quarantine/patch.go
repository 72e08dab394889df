package quarantine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/busy"
)

// RefusedPatch is the message with which git am refused a patch.
type RefusedPatch struct{ Said string }

func (e *RefusedPatch) Error() string { return e.Said }

// formatPatch and am are the options with which a change passes unchanged through mail. The mail contains only the
// change, so that no part of a commit message can count as a change. See git-format-patch(1), git-am(1).
var (
	formatPatch = []string{"format-patch", "--stdout", "-1", "-k", "--binary", "--full-index", "--no-renames", "--zero-commit", "--pretty=mboxrd",
		"--no-signature", "--no-stat", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/", "--submodule=short",
		"--no-color", "--no-attach", "--no-thread", "--no-notes", "--no-to", "--no-cc", "--no-add-header", "--no-base", "--encoding=UTF-8",
		"-U3", "--no-cover-letter", "--no-numbered"}
	am = []string{"am", "-q", "-k", "--keep-cr", "--patch-format=mboxrd", "--no-scissors", "--no-3way", "--no-message-id",
		"--whitespace=nowarn", "--quoted-cr=nowarn", "--no-gpg-sign"}
)

// Patch merges trees with git format-patch and git am, which apply the change from Base to Theirs to Ours. It uses its own
// repository and working tree, in which only changed files are written. If the patch does not apply, the error is a
// *[RefusedPatch].
func (b *Bridge) Patch(ctx context.Context, m Merge) (tree gitops.OID, err error) {
	dir := b.dir + ".patch"
	if err := os.RemoveAll(dir); err != nil { // from before a crash
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	g, err := b.patchGit(dir)
	if err != nil {
		return "", err
	}
	var commits [3]gitops.OID
	if commits[0], err = b.synthetic(m.Base); err != nil {
		return "", err
	}
	if commits[1], err = b.synthetic(m.Theirs, commits[0]); err != nil {
		return "", err
	}
	if commits[2], err = b.synthetic(m.Ours); err != nil {
		return "", err
	}
	err = errors.Join(g.Change(ctx, gitops.Call{Args: []string{"update-ref", "HEAD", string(commits[2])}}),
		g.Change(ctx, gitops.Call{Args: []string{"read-tree", string(commits[2])}}))
	if err != nil {
		return "", err
	}
	err = b.inTime("mail", m, func(t *busy.Meter) error { return mail(ctx, g.Metered(t), commits[1]) })
	if err != nil {
		return "", err
	}
	return g.Tree(ctx, "HEAD")
}

// mail applies one commit to HEAD through format-patch and am.
func mail(ctx context.Context, g *gitops.Git, commit gitops.OID) error {
	r, w := io.Pipe()
	defer r.Close()
	sent := make(chan error, 1)
	go func() {
		err := g.Look(ctx, gitops.Call{Args: append(formatPatch[:len(formatPatch):len(formatPatch)], string(commit)), Stdout: w})
		w.CloseWithError(err)
		sent <- err
	}()
	err := g.Change(ctx, gitops.Call{Args: am, Stdin: r, Stdout: io.Discard})
	r.Close()
	if failed := <-sent; failed != nil && !errors.Is(failed, io.ErrClosedPipe) {
		return fmt.Errorf("make a patch: %w", failed)
	}
	if refused := gitops.Status(err); refused > 0 {
		return &RefusedPatch{err.Error()}
	}
	return err
}

// patchGit creates the repository for a patch. Its attributes override those in the trees.
func (b *Bridge) patchGit(dir string) (*gitops.Git, error) {
	config := "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
	if b.outer.Format != "sha1" {
		config = "[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tobjectFormat = " + b.outer.Format + "\n"
	}
	for name, content := range map[string]string{
		"git/HEAD": "ref: refs/heads/patch\n", "git/config": config, "git/refs/heads/.keep": "",
		"git/info/attributes": "* -text -ident -filter -working-tree-encoding\n",
	} {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(content), 0o600)); err != nil {
			return nil, err
		}
	}
	tree := filepath.Join(dir, "tree")
	if err := os.Mkdir(tree, 0o700); err != nil {
		return nil, err
	}
	g := b.Configured("advice.amWorkDir=false").With("GIT_DIR="+filepath.Join(dir, "git"), "GIT_WORK_TREE="+tree,
		"GIT_COMMITTER_NAME=nobody", "GIT_COMMITTER_EMAIL=nobody@localhost")
	g.Dir = tree
	return g, nil
}
