package runs

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/promote/record"
)

// TestFitting checks that of too many programs those stay that were refused, and that the others are counted.
func TestFitting(t *testing.T) {
	var all []programLine
	rule := "*/whoami"
	const programs = 5000
	for i := range programs {
		e := record.Exec{Seq: uint64(i + 1), Argv: []string{"true", strings.Repeat("\x01", 1000)}}
		if i >= programs-2 {
			e.Deny = &rule
		}
		all = append(all, programLine{e, lineOf(e, nil)})
	}
	content, about, left := fitting(all)
	var kept []record.Exec
	if err := record.EachLine(record.ExecName, content, func(e record.Exec, _ []byte) { kept = append(kept, e) }); err != nil {
		t.Fatal(err)
	}
	if n := len(kept); len(content) > record.MaxFile || n < 2000 || left != uint64(programs-n) || about.Cut == 0 || kept[n-1].Seq != programs || kept[n-2].Deny == nil || !kept[0].Cut {
		t.Errorf("%d programs in %d bytes, %d left out, %d bytes cut", n, len(content), left, about.Cut)
	}
}

// TestLostPrograms checks that the numbers since the beginning of a run show which programs have no line any more.
func TestLostPrograms(t *testing.T) {
	var content []byte
	now := time.Now().UTC()
	for _, e := range []record.Exec{{Seq: 2, Time: now.Add(-2 * time.Hour)}, {Seq: 4, Time: now.Add(-time.Hour)}, {Seq: 9, Time: now}, {Seq: 11, Time: now}, {Seq: 9, Time: now}} {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		content = append(append(content, line...), '\n')
	}
	g := gathering{opening: opening{Programs: 3, Manifest: record.Manifest{Started: now.Add(-time.Minute)}}}
	kept, lost := g.programsUntil(now.Add(time.Minute), content)
	if len(kept) != 2 || lost != 5 { // 5 to 8, and 10
		t.Errorf("%d programs, %d lost", len(kept), lost)
	}
}
