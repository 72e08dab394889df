package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// example is a command in the README or in a topic of the manual, with its output.
type example struct {
	section, command string
	output           []string
}

// Commands are the lines of indented blocks that begin with "$ ". In these sections, they are all lines of a block that is not the
// content of a file.
var unprompted = []string{"See it, test it", "Install", "Aliases and hooks"}

// examplesOf returns all examples of a file, and the blocks that are files, by their first lines.
func examplesOf(t *testing.T, file string) (examples []example, blocks map[string]string) {
	t.Helper()
	blocks = map[string]string{}
	section, block, began := "", "", false
	for line := range strings.Lines(string(read(t, file))) {
		line = strings.TrimRight(line, "\n")
		text, code := strings.CutPrefix(line, "    ")
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = title
		}
		if !code && line != "" {
			block, began = "", false
			continue
		}
		if line == "" && !began {
			continue
		}
		if !began {
			block = text
			began = true
		}
		blocks[block] += text + "\n"
		command, prompted := strings.CutPrefix(text, "$ ")
		last := len(examples) - 1
		switch {
		case prompted:
			examples = append(examples, example{section: section, command: uncommented(command)})
		case strings.HasPrefix(block, "$ ") && last >= 0:
			examples[last].output = append(examples[last].output, text)
		case slices.Contains(unprompted, section) && text != "" && !strings.HasPrefix(block, "#!") && !strings.HasPrefix(block, "airlock_ps1"):
			examples = append(examples, example{section: section, command: uncommented(text)})
		}
	}
	for i := range examples {
		for o := examples[i].output; len(o) > 0 && o[len(o)-1] == ""; o = examples[i].output {
			examples[i].output = o[:len(o)-1]
		}
	}
	return examples, blocks
}

func uncommented(command string) string {
	return strings.TrimRight(regexp.MustCompile(`\s{2,}# .*$`).ReplaceAllString(command, ""), " ")
}

// coveredBy maps examples that need more setup than the README shows to the test that covers them: a file, and a text in it.
var coveredBy = map[string][2]string{
	"scripts/demo": {"../../.ci/run", "part demo scripts/demo --yes"},
	"scripts/test": {"../../.ci/run", "part tests scripts/test --everywhere"},
	"git airlock run claude -p 'Write a price list, and commit it.'": {"testdata/script/network-credentials.txtar", "git airlock run claude -p 'Write a price list, and commit it.'"},
	"scripts/install":             {"testdata/install/install.txtar", "$TOP/scripts/install --program $PROGRAM\n"},
	"scripts/install --uninstall": {"testdata/install/install.txtar", "scripts/install --uninstall"},
	"go install github.com/git-airlock/git-airlock/cmd/git-airlock@latest": {"../../scripts/common", "./cmd/git-airlock"},
	"git airlock visit --attach":                                 {"testdata/script/attach.txtar", "git airlock visit --attach"},
	"cat coding-environment.toml":                                {"testdata/script/recipe-tools.txtar", "coding-environment.toml"},
	"git airlock start --backend native":                         {"testdata/script/recipe-tools.txtar", "asks for tools that this system does not have"},
	"git airlock init --yes --package make --pass API_KEY":       {"testdata/script/init.txtar", "git airlock init --yes --package make"},
	"git airlock checkpoint -m 'before the rewrite'":             {"testdata/script/checkpoint.txtar", "git airlock checkpoint -m first"},
	"git airlock checkpoint diff 1":                              {"testdata/script/checkpoint.txtar", "git airlock checkpoint diff 1"},
	"git airlock checkpoint restore --stop 1":                    {"testdata/script/checkpoint.txtar", "git airlock checkpoint restore --stop 3"},
	"git airlock events --since 1h":                              {"testdata/script/events.txtar", "git airlock events --since 1h"},
	"git airlock runs":                                           {"testdata/script/runs.txtar", "git airlock runs\n"},
	"git airlock inspect 1":                                      {"testdata/script/runs.txtar", "git airlock inspect\n"},
	"git airlock inspect 1 --verify":                             {"testdata/script/runs.txtar", "git airlock inspect 2 --verify"},
	"git airlock replay 1 --onto release --to prices-on-release": {"testdata/script/replay.txtar", "git airlock replay 1 --onto other --to onto"},
	"git airlock execs --top":                                    {"testdata/script/execs.txtar", "git airlock execs --top"},
	"git airlock check":                                          {"testdata/script/check.txtar", "exits 0 git airlock check\n"},
	"git notes --ref=airlock-check show HEAD^{tree}":             {"testdata/script/hold-check.txtar", "git notes --ref=airlock-check show HEAD^{tree}"},
	"git airlock verify HEAD":                                    {"testdata/script/verify.txtar", "git airlock verify HEAD\n"},
	"git airlock verify --json HEAD":                             {"testdata/script/verify.txtar", "git airlock verify --json main\n"},
	"git airlock report":                                         {"testdata/script/report.txtar", "exits 0 git airlock report\n"},
	"git airlock report 3 --html report.html":                    {"testdata/script/report.txtar", "--html pages/report.html"},
	"git airlock report 3 --open":                                {"testdata/script/report.txtar", "git airlock report --open"},
	"git airlock log --ops":                                      {"testdata/script/undo.txtar", "git airlock log --ops"},
	"git airlock undo":                                           {"testdata/script/undo.txtar", "airlock: undone: operation "},
	"git airlock sync":                                           {"testdata/script/sync.txtar", "brought to the agent as one commit: "},
	"git airlock redo":                                           {"testdata/script/undo.txtar", "git airlock redo"},
	"Secrets in a snapshot: git airlock start":                   {"testdata/script/scan-start.txtar", "the snapshot would contain secrets"},
	"git airlock start --image my-image":                         {"testdata/script/docker/choice.txtar", "git airlock start --image $IMAGE"},
}

// reader runs the commands of the README in the environment that it describes.
type reader struct {
	*testing.T
	env  []string
	dir  string
	ids  map[string]string // maps the README's short commit ids to the ones here
	seen map[string]bool   // the commands that have run
}

// TestReadme runs all examples of the README and the manual's topics, in their order, and compares the output.
func TestReadme(t *testing.T) {
	needNative(t)
	needPrograms(t, "bash", "zsh")
	t.Parallel()
	topics, err := filepath.Glob("internal/manual/topics/*.md")
	if err != nil || len(topics) == 0 {
		t.Fatal("no topics", err)
	}
	for _, file := range append(topics, "../../README.md") {
		if filepath.Base(file) == "colleagues.md" {
			continue // see TestColleagues
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			followAll(t, file)
		})
	}
}

// followAll runs the examples of a file in a new environment.
func followAll(t *testing.T, file string) {
	examples, blocks := examplesOf(t, file)
	r := newReader(t)
	switch filepath.Base(file) {
	case "workflows.md":
		r.run("git airlock start --tool ~/.local/bin/agent -- agent --yes")
		r.follow(example{command: "git log --oneline", output: []string{"36fef54 prices: the first", "e77407f Initial shop"}})
	case "policy.md", "doctor.md", "selftest.md":
		r.run("git airlock start")
	}
	for _, e := range examples {
		if covered, ok := coveredBy[e.command]; ok || coveredBy[e.section+": "+e.command][0] != "" {
			if !ok {
				covered = coveredBy[e.section+": "+e.command]
			}
			if !strings.Contains(string(read(t, covered[0])), covered[1]) {
				t.Errorf("%s, which should cover %q, has no %q", covered[0], e.command, covered[1])
			}
			continue
		}
		switch {
		case e.section == "Aliases and hooks":
			r.prepareAliases()
		case e.section == "Example": // the output depends on the machine
			r.run(e.command)
			continue
		case filepath.Base(file) == "policy.md":
			r.preparePolicy(e)
		}
		r.follow(e.inside())
	}
	if filepath.Base(file) == "workflows.md" {
		r.aliases(blocks)
		r.prompt(blocks)
	}
}

// inside removes the network from an example, because not every machine supports it. Other tests open a network.
func (e example) inside() example {
	command := strings.Replace(e.command, "--network open ", "", 1)
	if command != e.command {
		e.command = command
		e.output = strings.Split(strings.ReplaceAll(strings.Join(e.output, "\n"), "network open", "network none"), "\n")
	}
	return e
}

// newReader makes the shop repository, with an agent in its owner's home.
func newReader(t *testing.T) *reader {
	home := t.TempDir()
	r := &reader{T: t, dir: filepath.Join(home, "shop"), ids: map[string]string{}, seen: map[string]bool{}}
	r.env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GIT_") || strings.HasPrefix(v, "PS1=") }),
		"HOME="+home, "GIT_CONFIG_NOSYSTEM=1", "GIT_CEILING_DIRECTORIES="+home, "LC_ALL=C.UTF-8", "TERM=dumb", "EDITOR=true", "API_KEY=key")
	t.Cleanup(func() { r.try("git airlock clear --discard-pending; git -C ../second airlock clear --discard-pending") })
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.run(`git config --global user.name "Ada Example"; git config --global user.email ada@example.com; git config --global init.defaultBranch main
		git init -q; echo 10 >stock; git add .; git commit -qm "Initial shop"; git switch -q -c feat/prices; echo mine >notes
		git init -q --bare ../origin.git; git remote add origin ../origin.git
		mkdir -p ~/.local/bin; printf '#!/bin/sh\necho at work; echo 12 >prices; git add .; git commit -qm "prices: the first"; sleep 600\n' >~/.local/bin/agent; chmod +x ~/.local/bin/agent`)
	return r
}

// try runs a shell script in the shop repository.
func (r *reader) try(script string) (string, error) {
	cmd := exec.Command("sh", "-euc", script)
	cmd.Dir, cmd.Env = r.dir, r.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (r *reader) run(script string) string {
	r.Helper()
	out, err := r.try(script)
	if err != nil {
		r.Fatalf("%s: %v: %s", script, err, out)
	}
	return out
}

// follow runs a command and compares its output. A command that changes nothing is repeated until its output matches. A landing that the
// last command showed may still hold the lock of the index.
func (r *reader) follow(e example) {
	r.Helper()
	for readmes, ours := range r.ids {
		e.command = strings.ReplaceAll(e.command, readmes, ours)
	}
	looks := regexp.MustCompile(`^(git log|git airlock (status|log|visit -- (id|git log)))\b`).MatchString(e.command)
	end := time.Now().Add(patience)
	for _, err := os.Lstat(filepath.Join(r.dir, ".git/index.lock")); err == nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		_, err = os.Lstat(filepath.Join(r.dir, ".git/index.lock"))
	}
	for ; ; time.Sleep(100 * time.Millisecond) {
		out := r.run(e.command)
		if len(e.output) == 0 {
			return
		}
		got := strings.Split(strings.TrimRight(out, "\n"), "\n")
		if r.matches(e.output, got) {
			return
		}
		if !looks || time.Now().After(end) {
			r.Fatalf("%s: %s shows\n%s\nthe README:\n%s", e.section, e.command, out, strings.Join(e.output, "\n"))
		}
	}
}

// variation is output that depends on the time or the machine.
type variation struct {
	pattern *regexp.Regexp
	as      string
}

var varies = sync.OnceValue(func() []variation {
	return []variation{
		{regexp.MustCompile(`\b[0-9a-f]{40}\b`), "OID"},
		{regexp.MustCompile(`\b[0-9]{8}T[0-9]{6}Z-[0-9a-f]{4}\b`), "SESSION"},
		{regexp.MustCompile(`\b20[0-9-]{8}T[0-9:]{8}Z`), "TIME"},
		{regexp.MustCompile(`\b[0-9a-f]{12}\b`), "OID12"},
		{regexp.MustCompile(`\b(uid|gid|groups)[ =][0-9]+(\([a-z0-9]+\))?`), "${1}UID"},
		{regexp.MustCompile(`\b[0-9a-f]{7}\b`), "OID7"},
		{regexp.MustCompile(`\.[a-z]+-[0-9a-f]{4}\b`), "WORKSPACE"},
		{regexp.MustCompile(`\b[0-9a-f]{4}\b`), "ID"},
		{regexp.MustCompile(`\b[0-9]+ (second|minute|hour)s? ago`), "AGO"},
		{regexp.MustCompile(`^Date: .*`), "DATE"},
		{regexp.MustCompile(`Inner-Author: .*`), "AUTHOR"},
	}
})

func alike(line string) string {
	for _, v := range varies() {
		line = v.pattern.ReplaceAllString(line, v.as)
	}
	return strings.TrimRight(line, " ")
}

// matches compares output with the README, where "..." stands for any lines. It records the ids of the README's commits here. Lines
// about weaker isolation are ignored.
func (r *reader) matches(want, got []string) bool {
	weaker := func(line string) bool {
		return strings.HasPrefix(line, "weaker") || strings.HasPrefix(line, "airlock: weaker")
	}
	want, got = slices.DeleteFunc(slices.Clone(want), weaker), slices.DeleteFunc(got, weaker)
	short := regexp.MustCompile(`\b[0-9a-f]{7}\b`)
	for len(want) > 0 {
		switch {
		case want[0] == "...":
			if want = want[1:]; len(want) == 0 {
				return true
			}
			for len(got) > 0 && alike(got[0]) != alike(want[0]) {
				got = got[1:]
			}
			continue
		case len(got) == 0 || alike(got[0]) != alike(want[0]):
			return false
		}
		if w, g := short.FindString(want[0]), short.FindString(got[0]); w != "" {
			r.ids[w] = g
		}
		want, got = want[1:], got[1:]
	}
	return len(got) == 0
}

// preparePolicy makes the commits of the example.
func (r *reader) preparePolicy(e example) {
	switch {
	case e.command == "git airlock status" && !r.seen["secret"]:
		r.seen["secret"] = true
		r.run(`git airlock visit -- sh -euc 'mkdir -p keys; printf "ghp_%s\n" 1B2c3D4e5F6g7H8i9J0kLmNoPqRsTuVwXyZa >"keys/a b"; git add .; git commit -qm "two, with a key"'`)
	case e.command == "cat policy.toml":
		// Paste the next command of the previous status.
		next := regexp.MustCompile(`(?m)^next +(git airlock promote --accept .*)$`).FindStringSubmatch(r.run("git airlock status"))
		if next == nil {
			r.Fatal("nothing says how to accept the secret")
		}
		r.run(next[1])
		if err := os.WriteFile(filepath.Join(r.dir, "policy.toml"), []byte(strings.Join(e.output, "\n")+"\n"), 0o600); err != nil {
			r.Fatal(err)
		}
	case strings.HasPrefix(e.command, "git push"):
		if got := r.run("git airlock policy"); !regexp.MustCompile(`(?m)^host-exec +hold`).MatchString(got) || !strings.Contains(got, "team ") {
			r.Fatalf("the team's policy does not hold: %s", got)
		}
	}
}

// prepareAliases lands a commit for the examples.
func (r *reader) prepareAliases() {
	if !r.seen["aliases"] {
		r.seen["aliases"] = true
		r.run("git airlock run -- git commit -q --allow-empty -m 'for the aliases'")
	}
}

// aliases uses the aliases and hooks of the section.
func (r *reader) aliases(blocks map[string]string) {
	for _, c := range []struct{ command, want string }{
		{"git al status", "stopped"},
		{"git landed -1", "Airlock-Commit: "},
		{"git log -1", "Airlock-Commit: "},
		{"git commit -q --amend --allow-empty -m amended && git log -1", "Airlock-Session: "},
		{"git ls-remote origin", "refs/notes/airlock"},
	} {
		if got := r.run(c.command); !strings.Contains(got, c.want) {
			r.Errorf("%s does not show %q: %s", c.command, c.want, got)
		}
	}
	hooks := 0
	for first, text := range blocks {
		if first != "#!/bin/sh" {
			continue
		}
		for _, hook := range strings.SplitAfter(text, "#!/bin/sh\n")[1:] {
			hook = "#!/bin/sh\n" + strings.TrimSuffix(hook, "#!/bin/sh\n")
			name := "post-checkout"
			if strings.Contains(hook, "while read") {
				name = "pre-push"
			}
			hooks++
			if err := os.WriteFile(filepath.Join(r.dir, ".git/hooks", name), []byte(hook), 0o700); err != nil { //nolint:gosec // to be executed
				r.Fatal(err)
			}
		}
	}
	if hooks != 2 {
		r.Fatalf("%d hooks in the README", hooks)
	}
	if got := r.run("git push origin HEAD"); !strings.Contains(got, "by an agent: ") || !strings.Contains(got, "amended") {
		r.Errorf("pre-push says %s", got)
	}
	r.run("git switch -q main; git checkout -q stock")
	r.run("git worktree add -q -b second ../second; cd ../second; git airlock status; git airlock clear; git switch -q -c third")
	if got, err := r.try("cd ../second; git airlock status"); err == nil {
		r.Errorf("a branch that is switched to gets an airlock: %s", got)
	}
}

// prompt checks the prompt of two shells, without and with pending commits.
func (r *reader) prompt(blocks map[string]string) {
	code := ""
	for first, text := range blocks {
		if strings.HasPrefix(first, "airlock_ps1()") {
			code = text
		}
	}
	show := map[string]string{
		"bash": `bash --norc -c "$CODE"'; printf %s "${PS1@P}"'`,
		"zsh":  `zsh -f -c "setopt prompt_subst; $CODE"'; print -Pn -- "$PS1"'`,
	}
	r.env = append(r.env, "CODE="+strings.TrimSpace(code))
	for shell, script := range show {
		if got := r.run(script); strings.Contains(got, "wait") || got == "" {
			r.Errorf("%s's prompt while nothing waits: %q", shell, got)
		}
	}
	r.run("git switch -q feat/prices; git airlock start --no-auto-land; git airlock visit -- git commit -q --allow-empty -m waits")
	for shell, script := range show {
		got := r.run(script)
		for end := time.Now().Add(patience); !strings.Contains(got, "(commits wait)") && time.Now().Before(end); got = r.run(script) {
			time.Sleep(50 * time.Millisecond)
		}
		if !strings.Contains(got, "(commits wait)") {
			r.Errorf("%s's prompt while something waits: %q", shell, got)
		}
	}
}
