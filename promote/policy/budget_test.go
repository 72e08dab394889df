package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
)

// workOf returns the work that a commit causes.
func workOf(t testing.TB, s *store, c Commit) int64 {
	t.Helper()
	g := New(Settings{work: 1 << 50}, testFacts, s)
	if _, err := g.Check(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	return g.spent
}

// hostile commits, each with a size.
var hostile = map[string]func(n int) (before, after files){
	"names alike": func(n int) (before, after files) {
		after = files{}
		for i := range n {
			name := []byte("abcdefghijklmnopqr")
			for bit := range name {
				if i>>bit&1 == 1 {
					name[bit] -= 'a' - 'A'
				}
			}
			after["d/"+string(name)] = "x"
		}
		return files{}, after
	},
	"names in a folder": func(n int) (before, after files) {
		before = files{}
		for i := range n {
			before[fmt.Sprintf("d/%d", i)] = "x"
		}
		return before, before.with(files{"d/new": "y"})
	},
	"links in a chain": func(n int) (before, after files) {
		after = files{}
		for i := range n {
			after[fmt.Sprintf("l%06d", i)] = linkTo + fmt.Sprintf("l%06d", i+1)
		}
		return files{}, after
	},
	"links in a cycle": func(n int) (before, after files) {
		after = files{}
		for i := range n {
			after[fmt.Sprintf("l%06d", i)] = linkTo + fmt.Sprintf("./l%06d", (i+1)%n)
		}
		return files{}, after
	},
	"lines with a keyword": func(n int) (before, after files) {
		return files{}, files{"a": strings.Repeat("api_key = \"x1y2z3w4v5u6t7s8\"\n", n)}
	},
	"one long line": func(n int) (before, after files) {
		return files{}, files{"a": strings.Repeat("token=ghp_ key:", n)}
	},
	"Base64": func(n int) (before, after files) {
		return files{}, files{"a": strings.Repeat(strings.Repeat("c29tZSB3b3Jkcw", 5)+"\n", n)}
	},
	"repositories": func(n int) (before, after files) {
		after = files{}
		for i := range n {
			for _, name := range []string{"HEAD", "config", "objects/x", "refs/x"} {
				after[fmt.Sprintf("d%d/%s", i, name)] = "x"
			}
		}
		return files{}, after
	},
	"odd names": func(n int) (before, after files) {
		after = files{}
		for i := range n {
			after[fmt.Sprintf("a\\\\%d", i)] = "x"
		}
		return files{}, after
	},
	"every other line": func(n int) (before, after files) {
		var old, text strings.Builder
		for i := range n {
			fmt.Fprintf(&old, "line %d\n", i)
			fmt.Fprintf(&text, "line %d\nkey = new %d\n", i, i)
		}
		return files{"a": old.String()}, files{"a": text.String()}
	},
}

// TestGrowth checks that a commit of twice the size causes at most twice the work. Work is counted, and not time.
func TestGrowth(t *testing.T) {
	for name, made := range hostile {
		var work [2]int64
		for i, n := range []int{1000, 2000} {
			s := newStore()
			before, after := made(n)
			work[i] = workOf(t, s, s.commit(before, after, "m"))
		}
		if float64(work[1]) > 2.2*float64(work[0]) {
			t.Errorf("%s: %d for 1000, %d for 2000", name, work[0], work[1])
		}
	}
}

// BenchmarkHostile measures each kind of hostile commit, by size.
func BenchmarkHostile(b *testing.B) {
	for name, made := range hostile {
		for _, n := range []int{1_000, 10_000, 100_000, 200_000} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				s := newStore()
				before, after := made(n)
				c := s.commit(before, after, "m")
				for b.Loop() {
					b.ReportMetric(float64(workOf(b, s, c)), "work/op")
				}
			})
		}
	}
}

// TestBudget checks that a commit beyond its budget is held together with the findings so far, and passes once it is
// accepted.
func TestBudget(t *testing.T) {
	s := newStore()
	c := s.commit(testBase, testBase.with(files{".envrc": "x", "z/large": strings.Repeat("text\n", 1<<14)}), "m")
	settings, err := ReadSettings(gitops.Config{workKey: "100k"})
	check(t, err)
	for _, accepted := range []bool{false, true} {
		if accepted {
			c.Accepted = []Acceptance{{Rule: budgetID}}
		}
		found, err := New(settings, testFacts, s).Check(t.Context(), c)
		check(t, err)
		if len(found) != 2 || found[0].Rule != "host-exec" || found[1].Rule != budgetID || found[1].Accepted != accepted || (found[1].Action == Hold) == accepted {
			t.Fatalf("accepted %t: %+v", accepted, found)
		}
		if f := found[1]; f.Paths[0] != "z/large" || !strings.Contains(f.Detail, "airlock.limit.work allows (100k) at the rule secret") {
			t.Errorf("%+v", f)
		}
	}
	c.Accepted = nil
	if found, err := New(Settings{}, testFacts, s).Check(t.Context(), c); err != nil || len(found) != 1 {
		t.Errorf("with the default: %+v, %v", found, err)
	}
	settings.actions[budgetID] = Off
	if found, err := New(settings, testFacts, s).Check(t.Context(), c); err != nil || len(found) != 2 || found[1].Action != Flag {
		t.Errorf("off: %+v, %v", found, err)
	}
}

// endless are objects that end the context while they are read.
type endless struct {
	*store
	end context.CancelFunc
}

func (e endless) Blob(ctx context.Context, id gitops.OID, limit int64) ([]byte, int64, error) {
	e.end()
	return e.store.Blob(ctx, id, limit)
}

func TestHostileEnds(t *testing.T) {
	for name, made := range hostile {
		ctx, cancel := context.WithCancel(t.Context())
		s := newStore()
		before, after := made(100)
		if _, err := New(Settings{}, testFacts, endless{s, cancel}).Check(ctx, s.commit(before, after, "m")); !errors.Is(err, context.Canceled) && ctx.Err() != nil {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
}
