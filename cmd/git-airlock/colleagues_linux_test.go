package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestColleagues runs the commands of the manual page about colleagues in two clones and a bare repository: a colleague without
// git-airlock approves one pending commit and rejects another, and the airlock obeys.
func TestColleagues(t *testing.T) {
	needNative(t)
	t.Parallel()
	const pending = "$(git for-each-ref --format='%(objectname)' 'refs/airlock/*/pending')"
	const file = "internal/manual/topics/colleagues.md"
	examples, blocks := examplesOf(t, file)
	sections := map[string]string{}
	for _, e := range examples {
		sections[e.section] += e.command + "\n"
	}
	user := newReader(t)
	user.run("git push -q -u origin HEAD")
	colleague := &reader{T: t, dir: filepath.Join(filepath.Dir(user.dir), "colleague")}
	colleague.env = append(user.env, "GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=user.email", "GIT_CONFIG_VALUE_0=bob@example.com",
		"GIT_CONFIG_KEY_1=user.name", "GIT_CONFIG_VALUE_1=Bob Builder", "PATH="+withoutProgram(t))
	user.run("git clone -q ../origin.git ../colleague && git -C ../colleague checkout -q feat/prices")
	policy := blocks["version = 1"]
	if !strings.Contains(policy, "bob@example.com") {
		t.Fatalf("the page has the policy %q", policy)
	}
	user.run("git update-ref refs/airlock/policy $(printf '100644 blob %s\tpolicy.toml\n' $(git hash-object -w --stdin <<'END'\n" + policy + "END\n) | git mktree)")
	user.run("git airlock start --review=land && git airlock visit -- sh -euc 'for i in good bad; do echo $i >$i; git add .; git commit -qm $i; done'")
	user.until("test $(git log --oneline HEAD.." + pending + " | wc -l) = 2")
	id := strings.TrimSpace(user.run("git for-each-ref --format='%(refname)' 'refs/airlock/*/pending' | cut -d/ -f3"))
	here := func(section string) string {
		if sections[section] == "" {
			t.Fatalf("%s has no commands in the section %q", file, section)
		}
		return strings.ReplaceAll(sections[section], "7f3a", id)
	}

	user.run(here("Share the commits"))
	if out := colleague.run(here("Review as a colleague")); !strings.Contains(out, "+good") || !strings.Contains(out, "+bad") {
		t.Errorf("the colleague reads %s", out)
	}
	colleague.run("not() { ! \"$@\"; }; not command -v git-airlock")
	user.run(here("Take the verdicts over"))
	user.until("git log -1 --format=%s | grep -qx good")
	for command, want := range map[string]string{
		"git airlock review || true":                   "rejected",
		"git airlock review --json":                    "no test",
		"git notes --ref=airlock show HEAD":            "Airlock-Reviewed-By: Bob Builder <bob@example.com>",
		"git notes --ref=airlock-review show HEAD":     `"by":"Bob Builder <bob@example.com>"`,
		"test ! -e bad; git for-each-ref refs/airlock": "pending",
	} {
		if out := user.run(command); !strings.Contains(out, want) && want != "pending" {
			t.Errorf("%s shows no %q: %s", command, want, out)
		}
	}
	// Lines of somebody whom the policy does not name, of nobody, and of the wrong form do not count. When another commit, which
	// bob approves, has landed, they were read.
	user.run(`git airlock visit -- sh -euc 'for i in more other; do echo $i >$i; git add .; git commit -qm $i; done'`)
	user.until("git log -1 --format=%s " + pending + " | grep -qx other")
	user.run(`for l in '{"v":1,"verdict":"approve","by":"Eve <eve@example.com>","at":"2030-01-01T00:00:00Z"}' '{"v":1,"verdict":"approve","by":"bob@example.com","at":"2030-01-01T00:00:00Z","commit":"--all"}' \
		'{"v":1,"verdict":"approve","by":"bob@example.com' '{"v":9,"verdict":"approve","by":"bob@example.com"}' '{"v":1,"verdict":"approve","by":"","at":"2030-01-01T00:00:00Z"}' '[[[[[['; do
		git notes --ref=airlock-review append -m "$l" ` + pending + `~1; done
		git notes --ref=airlock-review append -m '{"v":1,"verdict":"approve","by":"<BOB@example.com>","at":"2030-01-01T00:00:00Z"}' ` + pending)
	user.until("test -e other")
	user.run("test ! -e more")
}

// until repeats a command that changes nothing until it succeeds.
func (r *reader) until(script string) {
	r.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		out, err := r.try(script)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			state, _ := r.try("git airlock status; git airlock review; cat .git/airlock/*/log; git notes --ref=airlock-review list") // as far as they work
			r.Fatalf("%s: %v: %s\nmeanwhile:\n%s", script, err, out, state)
		}
	}
}

// withoutProgram returns a PATH without git-airlock.
func withoutProgram(t *testing.T) string {
	t.Helper()
	var dirs []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if _, err := os.Stat(filepath.Join(dir, "git-airlock")); err != nil {
			dirs = append(dirs, dir)
		}
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatal(err)
	}
	return strings.Join(dirs, ":")
}
