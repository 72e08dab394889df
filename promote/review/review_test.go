package review_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/review"
)

var someID = gitops.OID(strings.Repeat("ab", 20))

// TestLinesOfNotes writes verdicts into a note and reads them, among lines that must be ignored.
func TestLinesOfNotes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 23, 20, 0, 0, 0, time.UTC)
	note := ""
	for i, w := range []review.Word{review.Fix, review.Approve, review.Reject, review.Seen} {
		v := review.Verdict{Word: w, By: "Ada <ada@example.com>", At: at.Add(-time.Duration(i) * time.Minute), Commit: someID,
			Paths: map[string]gitops.OID{gitops.ToText("a\xff"): someID}, Reason: "two\nlines"}
		line, err := v.Line()
		if err != nil || strings.Contains(line, "\n") {
			t.Fatalf("%q, %v", line, err)
		}
		note = review.Add(review.Add(note, line), line)
	}
	valid := strings.Count(note, "\n")
	note += "\nnot JSON\n{}\n" + `{"v":2,"verdict":"approve"}` + "\n" + `{"v":1,"verdict":"obey"}` + "\n" +
		`{"v":1,"verdict":"approve","commit":"--all"}` + "\n" + `{"v":1,"verdict":"approve","reason":"` + strings.Repeat("x", 100<<10) + "\"}\n" +
		`{"v":1,"verdict":"approve","at":"2026-11-23T21:00:00Z","later":{"field":1}}` + "\n"
	list := review.Parse(note)
	if len(list) != valid+1 || valid != 4 || list[0].Word != review.Seen || list[4].Word != review.Approve || list[0].Paths[gitops.ToText("a\xff")] != someID {
		t.Fatalf("%d: %+v", valid, list)
	}
	if n := len(review.Parse(strings.Repeat(`{"v":1,"verdict":"seen"}`+"\n", 5000))); n != 1000 {
		t.Errorf("%d lines were read", n)
	}
	plain, err := review.Verdict{Word: review.Reject, By: "Ada <ada@example.com>", Reason: "no"}.Line()
	if !strings.Contains(plain, `"by":"Ada <ada@example.com>"`) || !strings.Contains(plain, `"paths":{}`) || err != nil {
		t.Errorf("%s, %v", plain, err)
	}
	if _, err := (review.Verdict{Reason: strings.Repeat("x", 9<<10)}).Line(); err == nil {
		t.Error("a long reason was written")
	}
}

// FuzzParse checks that a line that was read is written and read again as it was.
func FuzzParse(f *testing.F) {
	f.Add(`{"v":1,"verdict":"approve","by":"Ada","at":"2026-11-23T20:00:00Z","commit":"` + string(someID) + `","paths":{"a":"x"},"reason":"why"}`)
	f.Fuzz(func(t *testing.T, note string) {
		for _, v := range review.Parse(note) {
			line, err := v.Line()
			if err != nil {
				t.Fatal(err)
			}
			if again := review.Parse(line); len(line) < 64<<10 && (len(again) != 1 || fmt.Sprint(again[0].At.UTC(), again[0].Word, again[0].Commit, len(again[0].Paths)) != fmt.Sprint(v.At.UTC(), v.Word, v.Commit, len(v.Paths))) {
				t.Fatalf("%q became %+v", line, again)
			}
		}
	})
}

// TestDigest compares changes that are the same elsewhere with changes that git patch-id takes for the same.
func TestDigest(t *testing.T) {
	t.Parallel()
	const diff = "diff --git a/a b/a\nindex 1111..2222 100644\n--- a/a\n+++ b/a\n@@ -1,9 +1,10 @@\n 1\n 2\n 3\n 4\n one\n+\ttwo\n 5\n 6\n 7\n 8\n" +
		"diff --git a/b b/b\nindex 5555..6666 100644\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-x\x00y\n+index 5\n"
	digest := func(message, diff string) string { return review.Digest([]byte(message), []byte(diff)) }
	same := strings.NewReplacer("1111..2222", "3333..4444", " 8\n", " 8\n 9\n").Replace(diff)
	if digest("m\n", diff) != digest("m\n", same) {
		t.Error("the same change at another place has another digest")
	}
	if twice := strings.Replace(same, " 8\n", " 8\n 2\n 3\n 4\n one\n 5\n 6\n 7\n", 1); digest("m\n", diff) == digest("m\n", twice) {
		t.Error("a change that fits two places has the digest of one that fits one place")
	}
	for _, c := range [][2]string{{"\ttwo", "  two"}, {"x\x00y", "x\x00z"}, {"+index 5", "+index 6"}, {"a/a b/a", "a/b b/b"}} {
		if other := strings.Replace(diff, c[0], c[1], 1); digest("m\n", diff) == digest("m\n", other) {
			t.Errorf("%q instead of %q has the same digest", c[1], c[0])
		}
	}
	if digest("m\n", diff) == digest("m2\n", diff) {
		t.Error("another message has the same digest")
	}
}

// TestVerdicts compares the effect of verdicts with the table of the manual.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	words := map[gitops.OID]review.Word{"a": review.Approve, "r": review.Reject, "f": review.Fix, "s": review.Seen}
	for _, asks := range []bool{false, true} {
		v := review.Verdicts{Asks: asks, Words: words}
		for id, want := range map[gitops.OID]bool{"a": false, "r": true, "f": true, "s": asks, "n": asks} {
			if v.Holds(id) != want {
				t.Errorf("asks %v, %s: %v", asks, id, !want)
			}
		}
	}
	v := review.Verdicts{Asks: true, Words: words}
	if w, asked := v.Waiting([]gitops.OID{"n", "f", "s"}); len(w) != 1 || !w["f"] || !maps.Equal(w, asked) {
		t.Errorf("nothing may land, and %v is set aside", w)
	}
	if w, asked := v.Waiting([]gitops.OID{"n", "a", "s"}); len(w) != 2 || w["a"] || len(asked) != 0 {
		t.Errorf("a may land, and %v is set aside", w)
	}
}
