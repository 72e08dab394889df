package promote_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain runs the tests as a user of their own, without the caller's git configuration.
func TestMain(m *testing.M) {
	if request := os.Getenv(daemonVariable); request != "" {
		os.Exit(daemonHelper(request))
	}
	// On Linux, /dev/shm is in memory: the tests make some ten thousand files, and the program syncs its files.
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() && os.Getenv("TMPDIR") == "" {
		_ = os.Setenv("TMPDIR", "/dev/shm")
	}
	os.Exit(tests(m))
}

func tests(m *testing.M) int {
	home, err := os.MkdirTemp("", "promote-home-")
	if err != nil {
		panic(err)
	}
	config := filepath.Join(home, "gitconfig")
	if err := os.WriteFile(config, []byte(userConfig), 0o600); err != nil {
		panic(err)
	}
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "GIT_") {
			_ = os.Unsetenv(name)
		}
	}
	for name, value := range map[string]string{"HOME": home, "GIT_CONFIG_GLOBAL": config, "GIT_CONFIG_NOSYSTEM": "1"} {
		_ = os.Setenv(name, value)
	}
	defer os.RemoveAll(home)
	return m.Run()
}

// userConfig is the git configuration of the tests. Background housekeeping would race with the removal of a test's
// folder. Other tests check the rules of the policy gate.
const userConfig = `[user]
	name = Ursula User
	email = ursula@host.example
[init]
	defaultBranch = main
[gc]
	auto = 0
[airlock "policy"]
	symlink-escape = off
	odd-path = off
	case-collision = off
	workspace-exposed = off
	embedded-repo = off
	secret = off
	agent-config = off
	host-exec = off
	hidden-text = off
	ghost-leak = off
`
