package attest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/durable"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
	"github.com/git-airlock/git-airlock/promote/evidence"
)

// sign makes the next statement about a commit and returns its line. In [Attester.Rest], a key of the session signs if the user's key does
// not.
func (a Attester) sign(ctx context.Context, s *state, commit, tree gitops.OID, about func(*evidence.Predicate)) (line string, err error) {
	rest := !a.userUntil.IsZero()
	soon, cancel := ctx, context.CancelFunc(func() {})
	if rest && s.Refused == "" {
		soon, cancel = context.WithTimeout(ctx, a.userUntil.Sub(a.Now()))
	}
	defer cancel()
	refused := s.Refused
	kind, key, err := a.key(soon, s)
	if err == nil {
		line, err = a.signWith(soon, s, kind, key, commit, tree, about)
	}
	if err == nil || !rest || refused != "" || ctx.Err() != nil {
		return line, err
	}
	s.Refused = err.Error()
	a.Say("your key does not sign evidence now, so that a key of the session signs the rest: %v", err)
	if kind, key, err = a.key(ctx, s); err != nil {
		return "", err
	}
	return a.signWith(ctx, s, kind, key, commit, tree, about)
}

// kindOf returns the kind of a key that has signed. It is empty for a key that cannot sign any more, because the user has another key now.
func (a Attester) kindOf(s *state, key string) (string, error) {
	if name := a.userKey(); name != "" && s.Keys[name] == key {
		return evidence.UserKey, nil
	}
	content, err := os.ReadFile(filepath.Join(a.dir(), keyName))
	if err != nil {
		return "", gitops.Unless(err, fs.ErrNotExist)
	}
	if own, err := evidence.KeyFingerprint(content); err != nil || own != key {
		return "", err
	}
	return evidence.SessionKey, nil
}

// signWith makes the next statement of one key about a commit and returns its line.
func (a Attester) signWith(ctx context.Context, s *state, kind, key string, commit, tree gitops.OID, about func(*evidence.Predicate)) (string, error) {
	if s.Program.Version == "" {
		s.Program = programOf(a.Version)
	}
	p := a.predicate(s, kind, key)
	about(&p)
	signed, payload, err := evidence.New(commit, tree, p).Payload()
	if err != nil {
		return "", err
	}
	armored, err := a.signature(ctx, kind, signed)
	if err != nil {
		return "", err
	}
	line, digest, err := evidence.Seal(payload, armored)
	if err == nil {
		s.next(key, link{N: p.N, Head: digest, Commit: commit, Tree: tree, Closed: p.Closed != nil})
	}
	return line, err
}

// predicate returns the part that all statements of one key have: about the airlock, and the place in the session.
func (a Attester) predicate(s *state, kind, key string) evidence.Predicate {
	r, last := a.Record, s.Chains[key]
	p := evidence.Predicate{Session: r.Session, N: last.N + 1, Previous: last.Head, At: a.Now().UTC().Truncate(time.Second),
		Branch: r.BranchName().String(), Base: r.Base, Key: kind, Program: s.Program,
		Prison: evidence.Prison{Backend: r.Backend, Runtime: r.Isolation.Runtime, Network: r.Isolation.Network, UID: r.Phantom.UID, GID: r.Phantom.GID,
			Memory: r.Isolation.Limits.Memory, CPUs: r.Isolation.Limits.CPUs, PIDs: r.Isolation.Limits.PIDs}}
	for _, w := range r.Isolation.Weaker {
		p.Prison.Weaker = append(p.Prison.Weaker, w.Kind)
	}
	if a.Kernel != nil {
		p.Prison.Kernel = a.Kernel()
	}
	return p
}

// keyName is the file of the session's own key.
const keyName = "evidence.key"

// key returns the kind of the key that signs now, and its fingerprint.
func (a Attester) key(ctx context.Context, s *state) (kind, fingerprint string, err error) {
	if name := a.userKey(); name != "" && s.Refused == "" {
		if s.Keys[name] == "" {
			err = a.learn(ctx, s, name)
		}
		if err == nil || ctx.Err() != nil {
			return evidence.UserKey, s.Keys[name], err
		}
		// The key may need a passphrase or a touch, and this process can ask nobody. From now on the key of the session signs: with one
		// key, the statements of a session form one chain.
		s.Refused = err.Error()
		a.Say("your key cannot sign evidence, so that a key of the session signs: %v", err)
	}
	file := filepath.Join(a.dir(), keyName)
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if content, err = evidence.NewKey(); err == nil {
			err = durable.WriteFile(file, content, 0o600)
		}
	}
	if err == nil {
		fingerprint, err = evidence.KeyFingerprint(content)
	}
	return evidence.SessionKey, fingerprint, err
}

// learn signs a text to find the fingerprint of the user's key. The setting can name the key in several ways.
func (a Attester) learn(ctx context.Context, s *state, name string) error {
	armored, err := a.signAsUser(ctx, []byte("git-airlock: which key is this?"))
	if err == nil {
		s.Keys[name], err = evidence.Fingerprint(armored)
	}
	return err
}

// userKey returns the user's setting for signing with a key of SSH, empty if there is none.
func (a Attester) userKey() string { return userKey(a.Config) }

func userKey(c gitops.Config) string {
	if !strings.EqualFold(c.String("gpg.format", ""), "ssh") {
		return ""
	}
	return c.String("user.signingKey", "")
}

// MissingKey returns the file of the key with which landed commits must be signed, if that file does not exist, and empty otherwise.
func MissingKey(c gitops.Config, top string) string {
	key := userKey(c)
	if sign, err := c.Bool("airlock.sign", false); err != nil || !sign || key == "" {
		return ""
	}
	file, err := keyFile(key, top)
	for _, name := range []string{file, file + ".pub"} { // an agent of SSH may have the private key
		if _, missing := os.Stat(name); err != nil || file == "" || missing == nil {
			return ""
		}
	}
	return file
}

func (a Attester) signature(ctx context.Context, kind string, signed []byte) ([]byte, error) {
	if kind == evidence.UserKey {
		return a.signAsUser(ctx, signed)
	}
	key, err := os.ReadFile(filepath.Join(a.dir(), keyName))
	if err != nil {
		return nil, err
	}
	return evidence.Sign(key, signed)
}

// signTime is how long the user's signing program may run. It has no terminal to ask at.
const signTime = 10 * time.Second

// signAsUser signs as git does for gpg.format=ssh: user.signingKey is a file, or a public key whose private key the agent of SSH has.
func (a Attester) signAsUser(ctx context.Context, signed []byte) ([]byte, error) {
	program := a.Config.String("gpg.ssh.program", "ssh-keygen")
	if !filepath.IsAbs(program) {
		found, err := hostenv.UserProgram(program)
		if err != nil {
			return nil, err
		}
		program = found
	}
	key, err := keyFile(a.userKey(), a.Repo.Top)
	if err != nil {
		return nil, err
	}
	var args []string
	switch {
	case key == "":
		literal := strings.TrimPrefix(a.userKey(), literalKey)
		key, args = filepath.Join(a.dir(), "evidence.pub"), []string{"-U"}
		if err := durable.WriteFile(key, []byte(literal+"\n"), 0o600); err != nil {
			return nil, err
		}
	case key == filepath.Join(a.Repo.Top, a.userKey()) && hostenv.Inside(key):
		return nil, fmt.Errorf("user.signingKey is %q in the work tree, where an agent's commit could replace the key", gitops.Text(a.userKey()))
	}
	bounded, cancel := context.WithTimeout(ctx, signTime)
	defer cancel()
	cmd := exec.CommandContext(bounded, program, append([]string{"-Y", "sign", "-n", evidence.Namespace, "-f", key}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stdin = "/", append(os.Environ(), "SSH_ASKPASS_REQUIRE=never", "SSH_ASKPASS="), bytes.NewReader(signed)
	cmd.SysProcAttr, cmd.WaitDelay = &syscall.SysProcAttr{Setsid: true}, time.Second
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("sign with %s: %w%s", filepath.Base(program), cmp.Or(bounded.Err(), err), lastSaid(err))
	}
	return out, nil
}

// literalKey begins a value of user.signingKey that is a public key.
const literalKey = "key::"

// keyFile returns the file of a key of SSH that user.signingKey names, as git finds it, and empty if the value is a public key. top is the top of
// the work tree.
func keyFile(value, top string) (string, error) {
	if strings.HasPrefix(value, literalKey) || strings.HasPrefix(value, "ssh-") {
		return "", nil
	}
	if rest, ok := strings.CutPrefix(value, "~/"); ok {
		home, err := os.UserHomeDir()
		return filepath.Join(home, rest), err
	}
	if filepath.IsAbs(value) {
		return value, nil
	}
	return filepath.Join(top, value), nil
}

// lastSaid returns the last line that a program wrote to its standard error before it failed, with a separator before it.
func lastSaid(err error) string {
	failed, ok := errors.AsType[*exec.ExitError](err)
	if !ok || len(bytes.TrimSpace(failed.Stderr)) == 0 {
		return ""
	}
	said := bytes.TrimSpace(failed.Stderr)
	return ": " + gitops.Text(bytes.TrimSpace(said[bytes.LastIndexByte(said, '\n')+1:])).String()
}
