package ledger

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
)

// FuzzLedger checks that parsing any ledger, writing it and parsing it again yields the same entries.
func FuzzLedger(f *testing.F) {
	one, two := strings.Repeat("1", 40), strings.Repeat("2", 64)
	f.Add(one + " " + two + " exact\n" + two + " " + one + " merged " + one + " " + two + "\n" + one)
	f.Add(one + " " + one + " like\n")
	f.Add(one + " " + one + " merged aside " + one + " -" + one + "\n")
	f.Fuzz(func(t *testing.T, content string) {
		entries, whole, err := parse(content)
		if err != nil {
			return
		}
		var again strings.Builder
		for _, p := range entries {
			again.WriteString(p.entry() + "\n")
		}
		back, wholeAgain, err := parse(again.String())
		if err != nil || !wholeAgain || !slices.EqualFunc(entries, back, func(a, b Pair) bool {
			return a.Inner == b.Inner && a.Outer == b.Outer && a.Merged == b.Merged && slices.Equal(a.Supersedes, b.Supersedes) &&
				slices.Equal(a.Without, b.Without) && a.Aside == b.Aside
		}) {
			t.Errorf("%q becomes %q: %v", content, again.String(), err)
		}
		if lines := strings.Count(content, "\n"); lines != len(entries) || whole != (content == "" || strings.HasSuffix(content, "\n")) {
			t.Errorf("%d entries of %d lines, whole: %v", len(entries), lines, whole)
		}
	})
}

// FuzzState reads the files of the host state with any content: each read fails, or its result can be written again.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{"version":1,"inner":"1111111111111111111111111111111111111111","holds":[{"reason":"policy","paths":["a"]}]}`))
	f.Add([]byte(`{"version":1,"commits":[{"commit":"11","findings":[{"rule":"secret","path":"x"}]},{"commit":"11"}]}`))
	f.Add([]byte(`{"version":1,"accepted":[{"rule":"secret"}],"dropped":[{"commit":"1"}]}`))
	f.Add([]byte(`{"version":2}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		for _, file := range []string{outcomeFile(dir), DecisionsFile(dir), gateFile(dir), numbersFile(dir), reviewsFile(dir)} {
			if err := os.WriteFile(file, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if o, err := ReadOutcome(dir); err == nil {
			stored(t, o.Write(dir), outcomeFile(dir))
		}
		if d, err := ReadDecisions(dir); err == nil {
			stored(t, d.Write(dir), DecisionsFile(dir))
		}
		if r, err := ReadReviews(dir); err == nil {
			stored(t, r.Write(dir), reviewsFile(dir))
		}
		if n, err := ReadNumbers(dir); err == nil {
			stored(t, n.Write(dir), numbersFile(dir))
		}
		l := &Ledger{outer: map[gitops.OID]bool{"11": true}}
		if v, err := ReadGateResults(dir, func() string { return "rules" }, l); err == nil {
			v.changed = true
			stored(t, v.Save(dir, l), gateFile(dir))
		}
	})
}

func stored(t *testing.T, err error, file string) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", filepath.Base(file), err)
	}
	content, err := os.ReadFile(file)
	if err != nil || !json.Valid(content) {
		t.Errorf("%s: %q, %v", filepath.Base(file), content, err)
	}
}
