package cost

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// value returns a value of the attribute that git reads as a number of at most 2000, in one of many ways.
func value(r *rand.Rand) string {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	number, sign := r.Int64N(2*MarkerLimit), pick("", "", "+")
	if r.IntN(3) == 0 {
		number = r.Int64N(2000)
	}
	switch r.IntN(6) {
	case 0: // more than an int
		number += r.Int64N(3) << 32
	case 1: // less than an int
		number, sign = 1<<32-number, "-"
	case 2:
		return pick("", "x", "-", "+", "--5", "+-300", "0x300", "set", "\v", "\f-", "99999999999999999999", "-99999999999999999999", "18446744073709551916")
	}
	return pick("", "", "\v", "\f\v") + sign + pick("", "", "0", "000000000000000000000000") + strconv.FormatInt(number, 10) + pick("", "", "x", "e9", ".5", "\v1")
}

// TestLongMarkerAgainstGit merges a conflict with git, and compares the length of its markers with the limit.
func TestLongMarkerAgainstGit(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	git := func(stdin string, wrong bool, args ...string) string {
		t.Helper()
		c := exec.Command("git", append([]string{"-C", dir}, args...)...)
		c.Stdin = strings.NewReader(stdin)
		out, err := c.Output()
		if (err != nil) != wrong {
			t.Fatalf("git %q: %v", args, err)
		}
		return string(out)
	}
	git("", false, "init", "-q")
	stream := ""
	for _, branch := range []string{"base", "ours", "theirs"} {
		stream += fmt.Sprintf("commit refs/heads/%s\ncommitter a <a@x> 1 +0000\ndata 0\n", branch)
		if branch != "base" {
			stream += "from refs/heads/base\n"
		}
		stream += fmt.Sprintf("M 644 inline a\ndata %d\n%s\n", len(branch)+1, branch+"\n")
	}
	git(stream, false, "fast-import", "--quiet")
	long := 0
	for range 150 {
		value := value(r)
		if err := os.WriteFile(filepath.Join(dir, ".gitattributes"), []byte("a "+MarkerSize+"="+value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		tree, _, _ := strings.Cut(git("", true, "merge-tree", "--write-tree", "--no-messages", "ours", "theirs"), "\n")
		merged := git("", false, "cat-file", "blob", tree+":a")
		size := len(merged) - len(strings.TrimLeft(merged, "<"))
		if size > MarkerLimit {
			long++
		}
		if size == 0 || size > MarkerLimit && !LongMarker(value) {
			t.Errorf("%q: git writes %d characters, and the value counts as small", value, size)
		}
		if plain, err := strconv.Atoi(value); err == nil && plain > 0 && plain <= MarkerLimit && LongMarker(value) {
			t.Errorf("%q counts as large", value)
		}
	}
	if long < 10 {
		t.Errorf("only %d long markers", long)
	}
}
