package quarantine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
)

// signingTime bounds the run time of the user's signing program, which may ask for a passphrase.
const signingTime = time.Minute

// Sign stores a commit with the user's signature and returns its id. Git signs according to user.signingKey,
// gpg.format and gpg.program in the user's configuration. Except for the signature, the commit is the given one. A
// commit that git would not write unchanged is an [inner.Invalid].
func (b *Bridge) Sign(ctx context.Context, c gitops.Commit) (gitops.OID, error) {
	if err := b.writeMerged(); err != nil {
		return "", err
	}
	args := []string{"commit-tree", "-S"}
	for _, p := range c.Parents {
		args = append(args, "-p", string(p))
	}
	encoding := cmp.Or(c.Encoding, "UTF-8")
	env := append(b.environment(), identEnv("AUTHOR", c.Author)...)
	env = append(env, identEnv("COMMITTER", c.Committer)...)
	var out bytes.Buffer
	err := b.outer.Configured("i18n.commitEncoding="+encoding).Change(ctx, gitops.Call{Args: append(args, string(c.Tree)), Env: env, For: signingTime,
		Stdin: bytes.NewReader(c.Message), Stdout: &out})
	if err != nil {
		return "", fmt.Errorf("sign a commit: %w", err)
	}
	id, err := gitops.ParseOID(strings.TrimSpace(out.String()))
	if err != nil {
		return "", fmt.Errorf("sign a commit: %w", err)
	}
	return id, b.onlySigned(ctx, id, c)
}

// identEnv returns the variables for an author or committer line, see git-commit-tree(1).
func identEnv(role, ident string) []string {
	who, when := gitops.SplitIdent(ident)
	name, mail, _ := strings.Cut(strings.TrimSuffix(who, ">"), " <")
	return []string{"GIT_" + role + "_NAME=" + name, "GIT_" + role + "_EMAIL=" + mail, "GIT_" + role + "_DATE=@" + when}
}

// onlySigned checks that a stored commit differs from the requested one only by the signature.
func (b *Bridge) onlySigned(ctx context.Context, id gitops.OID, want gitops.Commit) error {
	var out bytes.Buffer
	if err := b.Look(ctx, gitops.Call{Args: []string{"cat-file", "commit", string(id)}, Stdout: &out}); err != nil {
		return err
	}
	unsigned, signed := withoutSignature(out.Bytes())
	if !signed {
		return errors.New("sign a commit: git made no signature")
	}
	if !bytes.Equal(unsigned, want.Bytes()) {
		return inner.Invalidf("commit %q cannot be signed: git would not write it as it is", want.Subject())
	}
	return nil
}

// withoutSignature removes the header gpgsig (gpgsig-sha256 in a SHA-256 repository) from a commit. Its continuation
// lines begin with a space. See gitformat-signature(5).
func withoutSignature(raw []byte) (unsigned []byte, signed bool) {
	header, message, _ := bytes.Cut(raw, []byte("\n\n"))
	var kept [][]byte
	inside := false
	for _, line := range bytes.Split(header, []byte("\n")) {
		key, _, _ := bytes.Cut(line, []byte(" "))
		inside = inside && len(key) == 0 || bytes.HasPrefix(key, []byte("gpgsig"))
		if inside {
			signed = true
			continue
		}
		kept = append(kept, line)
	}
	return append(append(bytes.Join(kept, []byte("\n")), "\n\n"...), message...), signed
}
