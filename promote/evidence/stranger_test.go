package evidence

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
)

// strangersLine returns a line that somebody without the session's key can make, about a commit and its tree or not.
func strangersLine(t *testing.T, r *rand.Rand, w *world, key []byte, commit, tree gitops.OID) string {
	t.Helper()
	honest := w.lines[r.IntN(len(w.lines))]
	switch r.IntN(6) {
	case 0:
		return honest // a copy
	case 1:
		other, _ := otherLine(t, r, honest)
		return strings.ReplaceAll(other, "\n", "")
	case 2:
		forged := opened(t, honest)
		forged.Payload = bytes.Replace(forged.Payload, []byte(`"at":"20`), []byte(`"at":"21`), 1)
		line, err := json.Marshal(forged)
		if err != nil {
			t.Fatal(err)
		}
		return string(line)
	case 3:
		return w.closing
	default:
		p := predicateOf(t, honest)
		landed := *p.Landed
		landed.PatchID, landed.Tree = fmt.Sprintf("%040x", 5000+r.IntN(len(w.lines))), []string{"exact", "merged"}[r.IntN(2)]
		p.Landed, p.N, p.Prison.Network = &landed, 1+r.IntN(3), []string{"none", "open"}[r.IntN(2)]
		if p.Previous = ""; p.N > 1 {
			p.Previous = "x"
		}
		if r.IntN(2) == 0 {
			p.Session = "another"
		}
		if r.IntN(4) == 0 {
			p.Landed, p.Closed = nil, &Closed{Count: p.N - 1, Head: p.Previous}
		}
		line, _ := sealed(t, key, commit, tree, p)
		return line
	}
}

// status returns a number that is larger for a worse verdict, as the command's exit codes distinguish them.
func status(v Verdict) int {
	switch {
	case v.Verified():
		return 0
	case v.Missing():
		return 1
	}
	return 2
}

// TestStrangersLines adds lines of somebody without the session's key to the notes of commits that landed, and of a squash and a picked commit that
// are found by tree and by patch-id. No verdict becomes worse. With the session's key in the list of signers, each keeps its faults unless it becomes better.
func TestStrangersLines(t *testing.T) {
	rounds := 400
	if testing.Short() {
		rounds = 100
	}
	r, ways := rand.New(rand.NewPCG(5, 6)), map[string]int{}
	for range rounds {
		w := newWorld(t, 3)
		squash := Commit{ID: id(900), Tree: w.commits[2].Tree, Patch: func() string { return "" }}
		picked := Commit{ID: id(901), Tree: id(902), Patch: func() string { return fmt.Sprintf("%040x", 5001) }}
		commits := append(slices.Clone(w.commits), squash, picked)
		lists := []Signers{nil, {}, listOf(t, w.lines[0])}
		list := r.IntN(len(lists))
		required := []string{"", "signed", "closed", "signed,exact,closed", "review", "review,signed,network=open", "check=make,network=none"}[r.IntN(7)]
		if r.IntN(4) == 0 { // an open session, or one with a statement missing
			lines := slices.Clone(w.lines)
			lines[r.IntN(3)] = ""
			w.put(lines, []string{"", w.closing}[r.IntN(2)])
		}
		verdicts := func() (all []Verdict) {
			words, err := ParseRequirements(required)
			if err != nil {
				t.Fatal(err)
			}
			v := Verifier{Store: storeOf(w.notes), Required: words, Signers: lists[list]}
			for _, c := range commits {
				all = append(all, v.Verify(c))
			}
			return all
		}
		before, key := verdicts(), newKey(t)
		var added []string
		for range 1 + r.IntN(5) {
			of := commits[r.IntN(len(commits))]
			on := []gitops.OID{of.ID, of.Tree}[r.IntN(2)]
			line := strangersLine(t, r, &w, key, of.ID, of.Tree)
			if has := slices.Index(w.lines, line); has >= 0 && !strings.Contains(allOf(w.notes), line) {
				continue // a copy of the line that is missing
			}
			w.notes[on] = AddLine(w.notes[on], line)
			added = append(added, line)
		}
		for n, v := range verdicts() {
			was := before[n]
			if was.By == "" {
				continue // no evidence, of which a stranger's line is none either
			}
			ways[fmt.Sprintf("%s %d", v.By, status(v))]++
			worse := status(v) > status(was) || was.Level != LevelSelf && v.Level == LevelSelf
			changed := v.By != was.By || v.Digest != was.Digest || fmt.Sprint(v.Faults) != fmt.Sprint(was.Faults)
			if worse || list == 2 && changed && status(v) >= status(was) {
				t.Fatalf("list %d, %q, commit %d: %s %s %v, was %s %s %v\n%s", list, required, n,
					v.By, v.Level, v.Faults, was.By, was.Level, was.Faults, strings.Join(added, "\n"))
			}
		}
	}
	t.Log(ways)
}

func allOf(notes map[gitops.OID]string) string {
	var all strings.Builder
	for _, note := range notes {
		all.WriteString(note)
	}
	return all.String()
}

// listOf returns a list of signers with the key of a line.
func listOf(t *testing.T, line string) Signers {
	t.Helper()
	e, err := Open([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	list, err := ParseSigners([]byte("ada " + publicLine(e)))
	if err != nil {
		t.Fatal(err)
	}
	return list
}
