package ancestry_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/ancestry"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

func TestMain(m *testing.M) { gitopstest.Main(m) }

// past is a history without files. Its commits are numbered from 1, parents before children.
type past struct {
	*gitopstest.Repo
	stream  strings.Builder
	ids     []gitops.OID // [0] is unused
	parents [][]int
}

func newPast(t *testing.T) *past { return &past{Repo: gitopstest.New(t), parents: [][]int{nil}} }

// add adds a commit with a committer date.
func (p *past) add(date int, parents ...int) {
	n := len(p.parents)
	p.parents = append(p.parents, parents)
	fmt.Fprintf(&p.stream, "reset refs/heads/main\n\ncommit refs/heads/main\nmark :%d\ncommitter C <c@x> %d +0000\ndata 0\n", n, date)
	for i, parent := range parents {
		fmt.Fprintf(&p.stream, "%s :%d\n", []string{"from", "merge"}[min(i, 1)], parent)
	}
}

// write makes the commits.
func (p *past) write(t *testing.T) {
	marks := filepath.Join(t.TempDir(), "marks")
	gitopstest.Input(t, p.Top, nil, p.stream.String(), "fast-import", "--quiet", "--export-marks="+marks)
	text, err := os.ReadFile(marks)
	gitopstest.Check(t, err)
	p.ids = make([]gitops.OID, len(p.parents))
	for line := range strings.Lines(string(text)) {
		var n int
		var id string
		_, err := fmt.Sscanf(line, ":%d %s", &n, &id)
		gitopstest.Check(t, err)
		p.ids[n] = gitops.OID(id)
	}
}

func (p *past) named(numbers ...int) (ids []gitops.OID) {
	for _, n := range numbers {
		ids = append(ids, p.ids[n])
	}
	return ids
}

// reach returns what commits reach.
func (p *past) reach(numbers []int) map[int]bool {
	reached := map[int]bool{}
	for todo := slices.Clone(numbers); len(todo) > 0; {
		n := todo[0]
		if todo = todo[1:]; !reached[n] {
			reached[n], todo = true, append(todo, p.parents[n]...)
		}
	}
	return reached
}

// TestUnreachedWhateverTheDates compares random histories with dates in any order with what their commits reach. The last ones have dates in the
// order of the commits, so that git's list is right.
func TestUnreachedWhateverTheDates(t *testing.T) {
	t.Parallel()
	wrong := 0 // lists of git with too many commits
	for seed := range uint64(8) {
		honest := seed >= 6
		r := rand.New(rand.NewPCG(seed, 1))
		p := newPast(t)
		date := 1_700_000_000
		for n := 1; n <= 150; n++ {
			if r.IntN(15) == 0 && !honest { // for some commits from here on
				date = 1_000_000_000 + r.IntN(1_000_000_000)
			}
			var parents []int
			for range min(n-1, max(0, r.IntN(40)-36)+1) {
				parents = append(parents, max(1, n-1-r.IntN(1+r.IntN(3)*r.IntN(30))))
			}
			slices.Sort(parents)
			if r.IntN(40) == 0 {
				parents = nil
			}
			p.add(date+n, slices.Compact(parents)...)
		}
		p.write(t)
		for range 30 {
			some := func() (list []int) {
				for range 1 + r.IntN(3) {
					list = append(list, 1+r.IntN(150))
				}
				return list
			}
			tips, others := some(), some()
			var want []string
			reached := p.reach(others)
			for n := range p.reach(tips) {
				if !reached[n] {
					want = append(want, string(p.ids[n]))
				}
			}
			git := strings.Fields(p.Run(slices.Concat([]string{"rev-list"}, gitops.Names(p.named(tips...)), []string{"--not"}, gitops.Names(p.named(others...)))...))
			ids, err := p.Unreached(t.Context(), p.named(tips...), p.named(others...))
			gitopstest.Check(t, err)
			got := gitops.Names(ids)
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d: %v without %v: %d commits, want %d", seed, tips, others, len(got), len(want))
			}
			if len(git) > len(want) {
				wrong++
			}
			if honest && len(git) != len(got) {
				t.Errorf("seed %d: %v without %v: %d commits, and %d of git", seed, tips, others, len(got), len(git))
			}
		}
	}
	if t.Logf("git lists too many %d times", wrong); wrong == 0 {
		t.Error("no list of git has too many commits")
	}
}

// TestUnreachedReadsLittle checks that the walk does not go to the beginning of a history when the commits of the result are its newest, also when
// a merge has brought an older branch, or hundreds of them.
func TestUnreachedReadsLittle(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.add(1)
	for n := 2; n <= 2000; n++ {
		p.add(n, n-1)
	}
	tips, other := []int{}, 2001
	p.add(6000, 2000)
	for n := range 200 {
		p.add(6001+n, 1990-n%3)
		tips = append(tips, 2002+n)
	}
	p.write(t)
	got, met := p.unreached(t, tips, other)
	if len(got) != 200 || met > 1000 {
		t.Errorf("%d commits, %d lines of git", len(got), met)
	}
}

// TestUnreachedReadsNoWayToOldTags has others that are far from the commits of the result, or have nothing in common with them.
func TestUnreachedReadsNoWayToOldTags(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.add(1)
	for n := 2; n <= 2000; n++ {
		p.add(n, n-1)
	}
	p.add(3000, 20) // 2001: an old branch
	p.add(3001)     // 2002: another history
	p.add(3002, 2002)
	p.add(3003, 1997, 1900) // 2004: a merge
	p.add(4000, 2000)
	p.add(1000, 2005) // 2006: newer than 2005, with an old date
	p.write(t)
	for _, c := range []struct {
		name   string
		tip    int
		others []int
		want   []int
	}{
		{"tags", 2000, []int{5, 30, 1999}, []int{2000}},
		{"an old branch", 2000, []int{2001, 1998}, []int{1999, 2000}},
		{"another history", 2003, []int{2000}, []int{2002, 2003}},
		{"a merge", 2004, []int{5, 1900, 1996}, []int{1997, 2004}},
		{"a commit on top with an old date", 2005, []int{2006, 2000}, nil},
	} {
		got, met := p.unreached(t, []int{c.tip}, c.others...)
		slices.Sort(got)
		if want := p.named(c.want...); !slices.Equal(got, slices.Sorted(slices.Values(want))) || met > 20 {
			t.Errorf("%s: %d commits, want %d; %d lines of git", c.name, len(got), len(want), met)
		}
	}
}

// unreached returns the result of [ancestry.Unreached], and the number of lines that it has read.
func (p *past) unreached(t *testing.T, tips []int, others ...int) (got []gitops.OID, met int) {
	got, err := ancestry.Unreached(p.named(tips...), p.named(others...), func(revisions io.Reader, out io.Writer, options ...string) error {
		text, err := io.ReadAll(revisions)
		gitopstest.Check(t, err)
		for line := range strings.Lines(gitopstest.Input(t, p.Top, nil, string(text), append([]string{"rev-list", "--stdin"}, options...)...)) {
			met++
			if _, err := io.WriteString(out, strings.TrimSpace(line)+"\n"); err != nil {
				return err
			}
		}
		return nil
	})
	gitopstest.Check(t, err)
	return got, met
}
