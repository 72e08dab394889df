package scan

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy/secrets"
)

var publicOf = flag.String("public", "", "repositories, separated by commas, whose newest commit is searched")

// tolerated is the accepted number of high findings in a thousand files of public repositories. For each finding, a user must type a line
// before the first start.
const tolerated = 0.5

// TestPublic counts the findings in public repositories, whose owners know what they have published, and the planted secrets that a scan
// finds. scripts/alarms runs it.
func TestPublic(t *testing.T) {
	if *publicOf == "" {
		t.Skip("no -public: scripts/alarms gives some")
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "repository\tfiles\tMB\thigh\tmedium\tlow\tms\tms/10,000 files\tbefore a start, ms\t")
	files, high := 0, 0
	for _, dir := range strings.Split(*publicOf, ",") {
		repo, head := borrowed(t, dir)
		began := time.Now()
		full := Scanner{Repo: repo, Detect: detect}
		r, err := full.Tree(t.Context(), head.Tree)
		if err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		took := time.Since(began)
		began = time.Now()
		quick := Scanner{Repo: repo, Detect: detect, Certain: certain, Guessing: 16 << 20}
		if _, err := quick.Tree(t.Context(), head.Tree); err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%.0f\t%d\t\n", filepath.Base(strings.TrimSuffix(strings.TrimSuffix(dir, ".git"), "/repo")), r.Files,
			r.Bytes>>20, r.Count(High), r.Count(Medium), r.Count(Low), took.Milliseconds(), float64(took.Milliseconds())/float64(max(r.Files, 1))*1e4,
			time.Since(began).Milliseconds())
		files, high = files+r.Files, high+r.Count(High)
	}
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	rate := 1000 * float64(high) / float64(max(files, 1))
	fmt.Printf("high findings in a thousand files: %.2f\n", rate)
	if rate > tolerated {
		t.Errorf("more than %.1f", tolerated)
	}
}

func certain(path string, text []byte) []Match {
	var found []Match
	for _, m := range secrets.Default().Certain(path, text) {
		found = append(found, Match(m))
	}
	return found
}

// borrowed makes a repository with the newest commit of another one, bare or not.
func borrowed(t *testing.T, dir string) (*gitops.Repository, gitops.Head) {
	t.Helper()
	git := func(in string, args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = in
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q in %s: %v: %s", args, in, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	top := t.TempDir()
	objects := git(dir, "rev-parse", "--path-format=absolute", "--git-path", "objects")
	git(top, "init", "-q", "--object-format="+git(dir, "rev-parse", "--show-object-format"))
	if err := os.WriteFile(filepath.Join(top, ".git/objects/info/alternates"), []byte(objects+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	git(top, "update-ref", "HEAD", git(dir, "rev-parse", "HEAD"))
	repo, err := gitops.Open(t.Context(), top)
	if err != nil {
		t.Fatal(err)
	}
	head, err := repo.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return repo, head
}
