package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/git-airlock/git-airlock/prison/prisontest"
)

func init() {
	scriptCommands["published"] = cmdPublished
	scriptCommands["again"] = cmdAgain
	scriptCommands["pruned"] = cmdPruned
}

// TestLanguages runs the script about languages again, with images that are built from Debian packages. A brief run builds only the
// image for Python.
func TestLanguages(t *testing.T) {
	needDocker(t)
	brief := prisontest.Required("languages-brief")
	if !brief && !prisontest.Required("languages") {
		t.Skip("images with toolchains take minutes to build (scripts/try-languages)")
	}
	t.Parallel()
	config := "[airlock]\n\tbackend = docker\n"
	if network := os.Getenv("AIRLOCK_TEST_BUILD_NETWORK"); network != "" {
		config += "\tbuildNetwork = " + network + "\n"
	}
	runScripts(t, []string{"testdata/script/languages.txtar"}, testscript.Params{Setup: withImage(setup(t, config)),
		Condition: func(name string) (bool, error) {
			switch name {
			case "built":
				return true, nil
			case "brief":
				return brief, nil
			}
			return condition(name)
		}})
}

// hasLanguages reports whether this machine has the toolchains that the test repositories need.
func hasLanguages() bool {
	for _, program := range []string{"python3", "node"} {
		if _, err := exec.LookPath(program); err != nil {
			return false
		}
	}
	return true // these tests are written in Go
}

// published NAME publishes a repository, clones it, and lets an agent in a prison fix the failures of its tests. If the tests have an
// image, the recipe uses it as its base.
func cmdPublished(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 1, "published NAME")
	origin, clone := ts.MkAbs("published/"+args[0]), ts.MkAbs("cloned/"+args[0])
	if image := ts.Getenv("IMAGE"); image != "" {
		file := origin + "/coding-environment.toml"
		recipe := strings.Replace(ts.ReadFile(file), "schema_version = 1", "schema_version = 1\nos.base = \""+image+"\"", 1)
		ts.Check(os.WriteFile(file, []byte(recipe), 0o600))
	}
	cmdShell(ts, false, []string{`cd "$1"; git init -q; git add .; git commit -qm base; git clone -q "$1" "$2"`, origin, clone})
	runAgent(ts, clone)
	// The commit has landed, with the user as author and the inner tree.
	cmdShell(ts, false, []string{`cd "$1"; test "$(git log -1 --format=%an:%s)" = "Ursula User:$(cd "$1"; git log -1 --format=%s)"
		test "$(git rev-list --count HEAD)" = 2; git diff --quiet HEAD; not git diff --quiet HEAD~1; not git airlock status >/dev/null`, clone})
}

// again NAME starts again in that clone. No image is built.
func cmdAgain(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 1, "again NAME")
	clone := ts.MkAbs("cloned/" + args[0])
	ts.Setenv("BUILT", "")
	cmdShell(ts, false, []string{`cd "$1"; git reset -q --hard HEAD~1`, clone})
	runAgent(ts, clone)
	if built := ts.Getenv("BUILT"); built != "" {
		ts.Fatalf("an image was built again")
	}
}

// pruned NAME removes the image of that clone.
func cmdPruned(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 1, "pruned NAME")
	cmdShell(ts, false, []string{`cd "$1"; git rm -q coding-environment.toml; git commit -qm none; git airlock image prune; test -z "$(git airlock image list)"`,
		ts.MkAbs("cloned/" + args[0])})
}

// runAgent runs the one command, and cleans up after it.
func runAgent(ts *testscript.TestScript, clone string) {
	before := ts.MkAbs(".")
	ts.Check(ts.Chdir(clone))
	command := []string{"airlock", "run", "--", "sh", "-x", "agent.sh"}
	if ts.Getenv("IMAGE") == "" {
		command = slices.Insert(command, 2, "--backend=native")
	}
	succeed(ts, false, "git", command...)
	said := ts.ReadFile("stderr")
	succeed(ts, false, "git", "airlock", "clear")
	ts.Check(ts.Chdir(before))
	if strings.Contains(said, "building") {
		ts.Setenv("BUILT", filepath.Base(clone))
	}
}
