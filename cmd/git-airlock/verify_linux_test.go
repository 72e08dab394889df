package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison/prisontest"
)

// TestVerifyWithPlainTools runs the script of the manual page about verify, which needs no git-airlock.
func TestVerifyWithPlainTools(t *testing.T) {
	needNative(t)
	t.Parallel()
	for _, program := range []string{"jq", "ssh-keygen", "sha256sum"} {
		_, err := exec.LookPath(program)
		prisontest.Need(t, "jq", err)
	}
	_, blocks := examplesOf(t, "internal/manual/topics/verify.md")
	script := blocks["#!/bin/sh"]
	if lines := strings.Count(script, "\n"); lines == 0 || lines > 20 {
		t.Fatalf("the page has a script of %d lines", lines)
	}
	user := newReader(t)
	file := filepath.Join(filepath.Dir(user.dir), "verify-commit")
	if err := os.WriteFile(file, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	user.run(`ssh-keygen -q -t ed25519 -N "" -C "" -f ../key; git config gpg.format ssh; git config user.signingKey ../key
		git config user.signingKey "$(cd ..; pwd)/key"; printf "ada@example.com %s\n" "$(cat ../key.pub)" >../signers; printf "bob@example.com %s\n" "$(cat ../key.pub)" >../others`)
	user.run("git airlock start && git airlock visit -- sh -euc 'for i in a b; do echo $i >$i; git add .; git commit -qm $i; done'")
	user.until("git airlock verify HEAD && git log -1 --format=%s | grep -qx b")
	user.run("git airlock clear; git tag agent; git checkout -q --detach HEAD~2; git merge -q --squash agent; git commit -qm squashed; git tag squashed; git checkout -q -")
	plain := &reader{T: t, dir: user.dir, env: append(user.env, "PATH="+withoutProgram(t))}
	plain.run("not() { ! \"$@\"; }; not command -v git-airlock")
	for _, commit := range []string{"agent", "agent~1", "squashed"} {
		if out := plain.run("../verify-commit " + commit); !strings.Contains(out, "containment/v1") {
			t.Errorf("%s: %s", commit, out)
		}
		if out := plain.run("../verify-commit " + commit + " ../signers ada@example.com"); !strings.Contains(out, `Good "git-airlock" signature for ada@example.com`) {
			t.Errorf("%s: %s", commit, out)
		}
	}
	for _, refused := range []string{"agent~2", "agent ../others ada@example.com", "agent ../signers bob@example.com"} {
		if out, err := plain.try("../verify-commit " + refused); err == nil {
			t.Errorf("%s is accepted: %s", refused, out)
		}
	}
	plain.run(`for on in agent agent^{tree}; do git notes --ref=airlock-evidence show $on | sed s/eyJfd/eyJfe/ >../line; git notes --ref=airlock-evidence add -f -F ../line $on 2>/dev/null; done`)
	if out, err := plain.try("../verify-commit agent"); err == nil {
		t.Errorf("a changed statement is accepted: %s", out)
	}
}
