//go:build linux

package native_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/native"
	"github.com/git-airlock/git-airlock/prison/prisontest"
)

// TestExamineAgrees compares the weaknesses that Examine reports with those of a prison that is started afterwards.
func TestExamineAgrees(t *testing.T) {
	b, s := prepared(t)
	findings, err := b.Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	isolation := start(t, b, s)
	foretold := map[string]bool{}
	for _, f := range findings {
		if f.Name == "" || f.Value == "" {
			t.Errorf("%+v", f)
		}
		if f.Lack != "" {
			foretold[f.Lack] = true
		}
	}
	for _, w := range isolation.Weaker {
		if !foretold[w.Text] && w.Kind != prison.HostPath { // whether a path is visible depends on the file system
			t.Errorf("the prison lacks %q, and nothing foretold it", w)
		}
		delete(foretold, w.Text)
	}
	for w := range foretold {
		t.Errorf("the prison does not lack %q", w)
	}
}

// TestExamineWithoutRange examines as a user without subordinate ids.
func TestExamineWithoutRange(t *testing.T) {
	_, err := exec.LookPath("newuidmap") // a missing newuidmap would be reported first
	prisontest.Need(t, "rootless", err)
	var told struct {
		Findings    []prison.Finding
		Unavailable *prison.Unavailable
	}
	if err := json.Unmarshal(asNobody(t, examinerEnv), &told); err != nil {
		t.Fatal(err)
	}
	u := told.Unavailable
	if u == nil || u.Backend != "native" || u.Reason == "" || len(u.Mend) != 1 || !strings.HasPrefix(u.Mend[0], "sudo usermod ") {
		t.Fatalf("%+v", u)
	}
	for _, f := range told.Findings {
		if f.Name == "phantom uids" && len(f.Mend) == 1 && f.Mend[0] == told.Unavailable.Mend[0] {
			return
		}
	}
	t.Errorf("%+v", told.Findings)
}

// examinerEnv makes the test binary print the findings of Examine as JSON.
const examinerEnv = "PRISONTEST_EXAMINE"

func examineAndTell() int {
	var u *prison.Unavailable
	findings, err := native.New().Examine(context.Background())
	if err != nil && !errors.As(err, &u) {
		return 1
	}
	json.NewEncoder(os.Stdout).Encode(map[string]any{"Findings": findings, "Unavailable": u})
	return 0
}
