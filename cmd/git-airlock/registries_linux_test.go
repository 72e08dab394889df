package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/ledger"
	"github.com/git-airlock/git-airlock/prison/egress/sets"
	"github.com/git-airlock/git-airlock/prison/prisontest"
)

func init() { scriptCommands["client"] = cmdClient }

// costly are clients that CI does not install. A short run leaves them out, and the other ones of long.
var costly, long = []string{"cargo", "java"}, []string{"go", "node", "npm", "pip"}

// TestClients lets real programs fetch from stand-ins of the hosts that a set of rules opens. A script's name begins with its program.
// With AIRLOCK_TEST_CLIENTS_IMAGE, they are those of a container's image, which scripts/base-image can make with their packages.
func TestClients(t *testing.T) {
	needNative(t)
	if os.Geteuid() != 0 && givenWorld() == "" {
		t.Skip("only root can make a network beside this one")
	}
	prisontest.Need(t, "network", needTUN())
	parallel := func(t *testing.T) {
		if givenWorld() == "" { // all scripts would change it
			t.Parallel()
		}
	}
	parallel(t)
	for _, file := range scriptsIn(t, "script/clients") {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		program, _, _ := strings.Cut(name, "_")
		t.Run(name, func(t *testing.T) {
			parallel(t)
			feature := "clients"
			if slices.Contains(costly, program) {
				feature = program
			}
			if testing.Short() && slices.Contains(append(long, costly...), program) && !prisontest.Required(program) {
				t.Skip("a long test (scripts/test --everywhere)")
			}
			config := ""
			if image := os.Getenv("AIRLOCK_TEST_CLIENTS_IMAGE"); image != "" {
				config = "[airlock]\n\tbackend = docker\n\timage = " + image + "\n"
			} else {
				prisontest.Need(t, feature, visibleInside(program))
			}
			start := func(env *testscript.Env) error {
				env.Setenv("DOCKER_HOST", os.Getenv("DOCKER_HOST"))
				return setup(t, config)(env)
			}
			runScripts(t, []string{file}, testscript.Params{Setup: start})
		})
	}
}

func needTUN() error {
	if !openNetwork() {
		return errors.New("there is no /dev/net/tun that can be opened")
	}
	return nil
}

// visibleInside looks for a program in the folders that a native prison shows.
func visibleInside(program string) error {
	for _, folder := range []string{"/usr/local/bin", "/usr/bin", "/bin", "/usr/local/go/bin"} {
		if _, err := exec.LookPath(filepath.Join(folder, program)); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s is not in a folder that a prison shows", program)
}

// client RULES HOSTS PATTERN TEXT runs a shell script in the prison, in a new home. With the rules it must succeed, and reach exactly the
// hosts. Without one of these hosts it must fail, say why (PATTERN), and the ledger must name the host.
func cmdClient(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 4, "client RULES HOSTS PATTERN TEXT")
	texts, hosts, said := ruleTexts(ts, args[0]), strings.Fields(args[1]), regexp.MustCompile(args[2])
	cmdRules(ts, false, texts)
	before := lastRecord(ts)
	if out, err := visit(ts, args[3]); err != nil {
		ts.Fatalf("%s does not suffice: %v; refused: %s\n%s", args[0], err, awaitNames(ts, before, control.VerdictDeny), out)
	}
	if reached := awaitNames(ts, before, control.VerdictAllow, hosts...); !slices.Equal(reached, slices.Sorted(slices.Values(hosts))) {
		ts.Fatalf("it reached %s, want %s", reached, hosts)
	}
	for _, host := range hosts {
		less := slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return strings.HasPrefix(text, host+":") })
		cmdRules(ts, false, append(less, "!"+host))
		before, begun := lastRecord(ts), time.Now()
		out, err := visit(ts, args[3])
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() == 124 {
			ts.Fatalf("without %s: %v; want a failure\n%s", host, err, out)
		}
		if refused := awaitNames(ts, before, control.VerdictDeny, host); !slices.Contains(refused, host) {
			ts.Fatalf("without %s the ledger has refusals of %s\n%s", host, refused, out)
		}
		line := said.Find(out)
		if line == nil {
			ts.Fatalf("without %s nobody can know why it fails:\n%s", host, out)
		}
		ts.Logf("without %s, after %s: %s", host, time.Since(begun).Round(time.Millisecond), line)
	}
}

// ruleTexts returns the rules of texts that are separated by commas, each for itself.
func ruleTexts(ts *testscript.TestScript, joined string) (all []string) {
	for text := range strings.SplitSeq(joined, ",") {
		rules, err := sets.Expand(text)
		ts.Check(err)
		for _, r := range rules {
			all = append(all, r.String())
		}
	}
	return all
}

// trustStandIns adds the authority of the stand-ins to the certificates that programs trust. Those of an image do not have it.
const trustStandIns = `cat "$SSL_CERT_FILE" "$CA" >trusted.pem
for name in $(env | sed -n "s|=$SSL_CERT_FILE\$||p"); do export "$name=$HOME/trusted.pem"; done
echo "ca_certificate = $HOME/trusted.pem" >wgetrc
export "WGETRC=$HOME/wgetrc"
`

// visit runs a shell script in the prison, in a new home. A script that hangs has the exit status 124. The agent's programs have a low
// priority: on a busy machine they take fifty times as long.
func visit(ts *testscript.TestScript, text string) ([]byte, error) {
	if os.Getenv("AIRLOCK_TEST_CLIENTS_IMAGE") != "" {
		text = trustStandIns + text
	}
	cmd := exec.Command("git", "airlock", "visit", "--", "timeout", "600", "sh", "-euc", "export HOME=$(mktemp -d) CA=$PWD/ca.pem; cd; exec 2>&1; "+text)
	cmd.Dir, cmd.Env = ts.MkAbs("."), environ(ts)
	out, err := cmd.CombinedOutput()
	return bytes.TrimSpace(out), err
}

// networkLedger returns the folder of the airlock's ledger.
func networkLedger(ts *testscript.TestScript) string {
	dirs, err := filepath.Glob(ts.MkAbs(".git/airlock/*/prison"))
	ts.Check(err)
	if len(dirs) != 1 {
		ts.Fatalf("%d airlocks", len(dirs))
	}
	return dirs[0]
}

func lastRecord(ts *testscript.TestScript) uint64 {
	report, err := ledger.Verify(networkLedger(ts))
	ts.Check(err)
	return report.Last
}

// awaitNames returns the names in the records with a verdict after a number. It waits until the wanted names are there.
func awaitNames(ts *testscript.TestScript, after uint64, verdict string, wanted ...string) []string {
	for begun := time.Now(); ; rest(begun) {
		var names []string
		_, err := ledger.Read(networkLedger(ts), func(r control.Record) bool {
			if r.Seq > after && r.Verdict == verdict && r.Name != "" && !slices.Contains(names, r.Name) {
				names = append(names, r.Name)
			}
			return true
		})
		ts.Check(err)
		missing := slices.ContainsFunc(wanted, func(name string) bool { return !slices.Contains(names, name) })
		if !missing && len(names) > 0 || time.Since(begun) > patience {
			slices.Sort(names)
			return names
		}
	}
}
