package evidence

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func needKeygen(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		if slices.Contains(strings.Split(os.Getenv("AIRLOCK_TEST_REQUIRE"), ","), "native") {
			t.Fatal(err)
		}
		t.Skip("SKIPPED: no ssh-keygen (apt-get install openssh-client)")
	}
}

// TestSignersAsSSHKeygen compares lists of signers with what ssh-keygen makes of them. It uses them as git does: a key counts if one of the
// principals that the list has for it may sign.
func TestSignersAsSSHKeygen(t *testing.T) {
	needKeygen(t)
	key, dir := newKey(t), t.TempDir()
	line, _ := sealed(t, key, id(1), id(2), Predicate{Session: "s", N: 1, At: at, Landed: &Landed{Tree: "exact"}})
	e, err := Open([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	armored, err := Sign(key, []byte("signed"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "sig"), armored, 0o600); err != nil {
		t.Fatal(err)
	}
	cases, accepted := signerLists(strings.TrimSpace(publicLine(e))), 0
	if testing.Short() {
		cases = cases[:len(cases)/3]
	}
	for _, list := range cases {
		want := keygenAccepts(t, dir, list)
		signers, err := ParseSigners([]byte(list))
		who := ""
		if err == nil {
			who, err = signers.Who(e.Key, at)
		}
		if got := who != ""; got != want || got == (err != nil) {
			t.Errorf("%q: ssh-keygen accepts: %v, here: %v, %v", list, want, got, err)
		}
		if want {
			accepted++
		}
	}
	if accepted < len(cases)/5 || accepted > len(cases)*4/5 {
		t.Errorf("%d of %d lists accept the key, which proves little", accepted, len(cases))
	}
}

// signerLists returns lists of signers with a public key, in a fixed order.
func signerLists(public string) (lists []string) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from []string) string { return from[random.IntN(len(from))] }
	patterns := func(atoms []string) string {
		var all []string
		for range 1 + random.IntN(3) {
			all = append(all, pick([]string{"", "", "", "!", "!!"})+pick(atoms))
		}
		return strings.Join(all, pick([]string{",", ",", ",", ", "}))
	}
	namespaces := []string{"git-airlock", "git-airlock", "git*", "*", "**", "?it-airlock", "git-airloc?", "git-airlock?", "g*k", "*-*-*", "*a*r*k", "git", "file", "", "Git-Airlock",
		"git-airlock" + strings.Repeat("*", 1100)}
	people := []string{"ada", "ada", "bob@example.com", "*", "*@example.com", "a?a", "ada?"}
	// No moment is that of the signature: ssh-keygen then takes a key that is "valid for use before" it.
	moments := []string{"20261101", "20261031Z", "20261102Z", "202611011201Z", "202611011159Z", "20261101120001Z", "20261101115959Z", "soon"}
	for range 240 {
		who := strings.ReplaceAll(patterns(people), " ", "")
		if random.IntN(8) == 0 {
			who = `"` + who + `"`
		}
		var options []string
		if random.IntN(2) == 0 {
			options = append(options, pick([]string{"namespaces", "namespaces", "NameSpaces"})+`="`+patterns(namespaces)+`"`)
		}
		for _, name := range []string{"valid-after", "valid-before"} {
			if random.IntN(4) == 0 {
				options = append(options, name+`="`+pick(moments)+`"`)
			}
		}
		if random.IntN(20) == 0 {
			options = append(options, pick([]string{"cert-authority", "namespaces=git-airlock", `namespaces="*"`, "unknown"}))
		}
		gap := pick([]string{" ", "  ", "\t"})
		line := who + gap + strings.Join(options, ",") + gap + public + pick([]string{"", " a comment", "\t# x"}) + pick([]string{"\n", "\r\n"})
		lists = append(lists, pick([]string{"", "", "# ada " + public + "\n", "\r\n\n"})+line)
	}
	return lists
}

// keygenAccepts reports whether ssh-keygen verifies the signature in dir with a list of signers.
func keygenAccepts(t *testing.T, dir, list string) bool {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "list"), []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, error) {
		cmd := exec.Command("ssh-keygen", append(args, "-f", "list", "-s", "sig", "-O", "verify-time="+at.In(time.Local).Format("20060102150405"))...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader("signed")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, stderr.String())
		}
		return string(out), err
	}
	found, _ := run("-Y", "find-principals") // fails without one
	for principal := range strings.FieldsSeq(strings.ReplaceAll(found, ",", "\n")) {
		if _, err := run("-Y", "verify", "-n", Namespace, "-I", principal); err == nil {
			return true
		}
	}
	return false
}
