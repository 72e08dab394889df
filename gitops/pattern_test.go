package gitops

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPatternsAsGit compares what patterns leave out with what git ignores by the same lines.
func TestPatternsAsGit(t *testing.T) {
	dir := t.TempDir()
	git := func(stdin string, args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+filepath.Join(dir, "none"), "GIT_CONFIG_NOSYSTEM=1")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %q: %v", args, err)
		}
		return string(out)
	}
	git("", "init", "-q")
	blob := strings.TrimSpace(git("x", "hash-object", "-w", "--stdin"))
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	paths := map[string]bool{}
	for len(paths) < 200 {
		path := pick("a", "b.go", "key", "a b", "c*d")
		for range r.IntN(4) {
			path = pick("a", "dir", "b", "x[y]") + "_/" + path
		}
		paths[path] = true
	}
	var index strings.Builder
	for path := range paths {
		fmt.Fprintf(&index, "100644 %s\t%s\n", blob, path)
	}
	git(index.String(), "update-index", "--index-info")
	matched := 0
	for range 150 {
		var lines []string
		for range 1 + r.IntN(4) {
			line := pick("", "", "!") + pick("", "/", "**/")
			for range r.IntN(3) {
				line += pick("a_", "dir_", "*", "b_", "**", "[a-d]_", `x\[y]_`) + "/"
			}
			line += pick("a", "*.go", "key", "k?y", "*", "**", "a b", `c\*d`, "[!a]*", "dir_")
			lines = append(lines, line+pick("", "", "/", " "))
		}
		patterns, wrong, ok := ParsePatterns(lines)
		if !ok {
			t.Fatalf("%q is no pattern", wrong)
		}
		var got []string
		for path := range paths {
			if patterns.Within(path) {
				got = append(got, path)
			}
		}
		file := filepath.Join(dir, "patterns")
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		want := strings.FieldsFunc(git("", "ls-files", "-z", "--cached", "--ignored", "--exclude-from="+file), func(r rune) bool { return r == 0 })
		matched += len(want)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q: left out %d, git ignores %d; only one of them: %q", lines, len(got), len(want), apart(got, want))
		}
	}
	if matched < 1000 {
		t.Errorf("only %d paths matched: that compares little", matched)
	}
}

// apart is what only one of two lists has.
func apart(a, b []string) (only []string) {
	for _, s := range slices.Concat(a, b) {
		if slices.Contains(a, s) != slices.Contains(b, s) {
			only = append(only, s)
		}
	}
	return only[:min(len(only), 5)]
}
