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

// TestExamineAgrees compares what is foretold with what a prison started then says.
func TestExamineAgrees(t *testing.T) {
	b, s := prepared(t)
	findings, err := b.Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	isolation, err := b.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
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
		if !foretold[w.Text] && w.Kind != prison.HostPath { // the file system's
			t.Errorf("the prison lacks %q, and nothing foretold it", w)
		}
		delete(foretold, w.Text)
	}
	for w := range foretold {
		t.Errorf("the prison does not lack %q", w)
	}
}

// TestExamineWithoutRange examines as somebody who has no subordinate ids.
func TestExamineWithoutRange(t *testing.T) {
	_, err := exec.LookPath("newuidmap") // without it that is what is missing first
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

// examinerEnv makes the test binary print, as JSON, what Examine says.
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

// TestAppArmorProfile lets a shell write the profile.
func TestAppArmorProfile(t *testing.T) {
	for program, path := range map[string]string{
		"/usr/local/bin/git-airlock": "/usr/local/bin/git-airlock",
		`/home/o'neil/100% "x*\/g`:   `/home/o'neil/100% \"x\*\\/g`,
	} {
		print, _, _ := strings.Cut(native.AppArmorProfile(program)[0], " | sudo ")
		out, err := exec.Command("sh", "-c", print).Output()
		want := "abi <abi/4.0>,\nprofile git-airlock \"" + path + "\" flags=(unconfined) {\n  userns,\n}\n"
		if err != nil || string(out) != want {
			t.Errorf("%v:\n%s\nwant\n%s", err, out, want)
		}
	}
}
