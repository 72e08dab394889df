package main

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/git-airlock/git-airlock/prison/prisontest"
)

// skipsWithout matches a line of a script that skips the script on a machine without a program.
var skipsWithout = regexp.MustCompile(`(?m)^\[!exec:(.*)\] skip`)

// TestScriptPrograms looks for the programs without which scripts are skipped, because testscript's own condition cannot fail a script where
// the test environment must provide the program.
func TestScriptPrograms(t *testing.T) {
	t.Parallel()
	features := map[string]string{"jq": "jq", "newuidmap": "rootless"}
	named := map[string]bool{}
	err := filepath.WalkDir("testdata", func(path string, _ os.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".txtar" {
			for _, found := range skipsWithout.FindAllStringSubmatch(string(read(t, path)), -1) {
				named[found[1]] = true
			}
		}
		return err
	})
	if err != nil || len(named) == 0 {
		t.Fatal(named, err)
	}
	for name := range named {
		t.Run(name, func(t *testing.T) {
			_, err := exec.LookPath(name)
			prisontest.Need(t, cmp.Or(features[name], "shells"), err)
		})
	}
}
