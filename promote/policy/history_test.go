package policy

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/identity"
)

var (
	historyOf    = flag.String("history", "", "bare repositories, separated by commas, whose last commits the gate looks at")
	historyLimit = flag.Int("commits", 1000, "how many commits of each")
)

// tolerated is the accepted number of held commits in a hundred ordinary ones.
const tolerated = 1.0

// TestHistory counts false alarms: the findings of the default rules in the commits of public repositories.
// scripts/alarms runs it.
func TestHistory(t *testing.T) {
	if *historyOf == "" {
		t.Skip("no -history: scripts/alarms gives some")
	}
	var all []*alarms
	for _, dir := range strings.Split(*historyOf, ",") {
		a := countAlarms(t, dir, *historyLimit)
		all = append(all, a)
	}
	printAlarms(all)
	for _, d := range Rules() {
		held, commits := 0, 0
		for _, a := range all {
			held, commits = held+a.held[d.ID], commits+a.commits
		}
		if share := 100 * float64(held) / float64(max(commits, 1)); share > tolerated {
			t.Errorf("%s holds %.2f %% of %d commits", d.ID, share, commits)
		}
	}
}

// alarms are the findings in one repository.
type alarms struct {
	name          string
	commits       int
	held, flagged map[string]int
	anyHeld       int
	took          time.Duration
}

func countAlarms(t *testing.T, dir string, limit int) *alarms {
	t.Helper()
	a := &alarms{name: dir, held: map[string]int{}, flagged: map[string]int{}}
	list := exec.Command("git", "rev-list", "--no-merges", "--topo-order", "--reverse", fmt.Sprintf("--max-count=%d", limit), "HEAD")
	list.Dir = dir
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	inspector := quarantine.Open(dir, "sha1").Inspect(t.Context())
	defer inspector.Close()
	// Settings that many users have.
	config := gitops.Config{"filter.lfs.clean": "git-lfs clean -- %f", "filter.lfs.smudge": "git-lfs smudge -- %f",
		"filter.lfs.process": "git-lfs filter-process", "core.pager": "delta", "core.editor": "vim"}
	gate := New(Settings{}, Facts{Workspace: ".devspace-7f3a", Ghost: identity.Ghost{Name: "Robin Vale", Mail: "robin.vale@mail.example"},
		Top: "/home/user/project", Config: config}, inspector)
	begin := time.Now()
	for _, id := range strings.Fields(string(out)) {
		a.commits++
		found, err := checkObject(t.Context(), gate, inspector, gitops.OID(id))
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		a.add(t, id, found)
	}
	a.took = time.Since(begin)
	return a
}

// checkObject checks a commit of a repository as promotion checks a built one.
func checkObject(ctx context.Context, gate *Gate, inspector *quarantine.Inspector, id gitops.OID) ([]Finding, error) {
	commit, err := inspector.Commit(ctx, id)
	if err != nil {
		return nil, err
	}
	c := Commit{ID: id, Tree: commit.Tree, Message: commit.Message, Encoding: commit.Encoding}
	if len(commit.Parents) > 0 {
		parent, err := inspector.Commit(ctx, commit.Parents[0])
		if err != nil {
			return nil, err
		}
		c.ParentTree = parent.Tree
	}
	if c.Changes, err = inspector.Diff(ctx, c.ParentTree, c.Tree, inner.DefaultLimits); err != nil {
		return nil, err
	}
	return gate.Check(ctx, c)
}

func (a *alarms) add(t *testing.T, id string, found []Finding) {
	held, flagged := map[string]bool{}, map[string]bool{}
	for _, f := range found {
		if f.Action == Hold {
			held[f.Rule] = true
		} else {
			flagged[f.Rule] = true
		}
		if testing.Verbose() {
			t.Logf("%.10s %s %s: %s", id, f.Action, f.Rule, f.Detail)
		}
	}
	for rule := range held {
		a.held[rule]++
	}
	for rule := range flagged {
		a.flagged[rule]++
	}
	if len(held) > 0 {
		a.anyHeld++
	}
}

// printAlarms prints a table of the commits held, and of those only flagged, for each rule and repository.
func printAlarms(all []*alarms) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	defer w.Flush()
	row := func(name string, cell func(*alarms) string) {
		fmt.Fprint(w, name)
		for _, a := range all {
			fmt.Fprint(w, "\t"+cell(a))
		}
		fmt.Fprintln(w)
	}
	row("held/flagged", func(a *alarms) string {
		parts := strings.FieldsFunc(a.name, func(r rune) bool { return r == '/' || r == '+' })
		parts = slices.DeleteFunc(parts, func(p string) bool { return p == "repo" || p == ".git" })
		return parts[len(parts)-1]
	})
	row("commits", func(a *alarms) string { return fmt.Sprint(a.commits) })
	for _, d := range Rules() {
		row(d.ID, func(a *alarms) string { return fmt.Sprintf("%d/%d", a.held[d.ID], a.flagged[d.ID]) })
	}
	row("held by any", func(a *alarms) string { return fmt.Sprint(a.anyHeld) })
	row("ms a commit", func(a *alarms) string {
		return fmt.Sprintf("%.2f", float64(a.took.Microseconds())/1000/float64(max(a.commits, 1)))
	})
}
