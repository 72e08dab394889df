//go:build linux

package native_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/native"
	"github.com/git-airlock/git-airlock/prison/prisontest"
)

// starterEnv holds a spec and makes the test binary start that prison and exit.
const starterEnv = "PRISONTEST_START"

// openerEnv holds a spec and makes the test binary open that prison and wait inside.
const openerEnv = "PRISONTEST_OPEN"

// rolesHere are roles of the test binary that not all processors have, by the variable that selects one and is passed to it.
var rolesHere = map[string]func(string) int{}

func TestMain(m *testing.M) {
	if spec := os.Getenv(starterEnv); spec != "" {
		os.Exit(startAndLeave(spec))
	}
	if spec := os.Getenv(openerEnv); spec != "" {
		os.Exit(openAndWait(spec))
	}
	if os.Getenv(attemptEnv) != "" {
		os.Exit(tryAll())
	}
	if os.Getenv(outsideEnv) != "" {
		os.Exit(beOutside())
	}
	if address := os.Getenv(dialEnv); address != "" {
		os.Exit(dialAndTell(address))
	}
	if os.Getenv(examinerEnv) != "" {
		os.Exit(examineAndTell())
	}
	for name, role := range rolesHere {
		if value := os.Getenv(name); value != "" {
			os.Exit(role(value))
		}
	}
	os.Exit(m.Run())
}

// asNobody runs this test binary, with a variable set, as a user without subordinate ids.
func asNobody(t *testing.T, variable string) []byte {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	needNative(t)
	const nobody = 65534
	cmd := exec.Command(prisontest.CopyOfTest(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), variable+"=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func startAndLeave(encoded string) int {
	var s prison.Spec
	if err := json.Unmarshal([]byte(encoded), &s); err != nil {
		panic(err)
	}
	isolation, err := native.New().Start(context.Background(), s)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, w := range isolation.Weaker {
		fmt.Println(w.Text)
	}
	return 0
}

func needNative(t testing.TB) prison.Backend {
	t.Helper()
	b := native.New()
	prisontest.Need(t, "native", b.Probe(t.Context()))
	return b
}

// options returns a phantom for the current user. Programs are recorded, as by default.
func options(t testing.TB) prisontest.Options {
	t.Helper()
	uid, gid := prisontest.Phantom(t)
	return prisontest.Options{UID: uid, GID: gid, Record: true}
}

func TestBackend(t *testing.T) { prisontest.Run(t, needNative(t), options(t)) }

// TestOrdinaryUser runs all of these tests again as an ordinary user.
func TestOrdinaryUser(t *testing.T) {
	prisontest.AsOrdinaryUser(t, "native", "")
}

// TestReach tries to reach addresses that an open network must refuse.
func TestReach(t *testing.T) { prisontest.Reach(t, needNative(t), options(t)) }
