package evidence

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/checks"
)

// world is a closed session of landed commits, and a second one with another key.
type world struct {
	commits []Commit
	lines   []string // of the statements about the commits
	closing string
	other   string // a statement of the second session, about the first commit
	notes   map[gitops.OID]string
}

func id(n int) gitops.OID { return gitops.OID(fmt.Sprintf("%040x", n+1)) }

// sealed returns the line of a statement and its digest.
func sealed(t testing.TB, key []byte, commit, tree gitops.OID, p Predicate) (line, digest string) {
	t.Helper()
	signed, payload, err := New(commit, tree, p).Payload()
	if err != nil {
		t.Fatal(err)
	}
	armored, err := Sign(key, signed)
	if err != nil {
		t.Fatal(err)
	}
	if line, digest, err = Seal(payload, armored); err != nil {
		t.Fatal(err)
	}
	return line, digest
}

func newKey(t testing.TB) []byte {
	t.Helper()
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

var at = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func newWorld(t testing.TB, count int) world {
	t.Helper()
	return worldOf(t, newKey(t), count)
}

func worldOf(t testing.TB, key []byte, count int) world {
	t.Helper()
	return worldNaming(t, key, count, func(_ int, line string) string { return line })
}

// worldNaming makes a session in which each statement names the line that named returns for the statement before it.
func worldNaming(t testing.TB, key []byte, count int, named func(n int, line string) string) world {
	t.Helper()
	w := world{notes: map[gitops.OID]string{}}
	previous := ""
	prison := Prison{Backend: "native", Network: "none", UID: 70001}
	for n := range count {
		c := Commit{ID: id(2 * n), Tree: id(2*n + 1), Patch: func() string { return "" }}
		p := Predicate{Session: "s", N: n + 1, Previous: previous, At: at, Prison: prison,
			Landed: &Landed{Inner: id(1000 + n), Tree: "exact", PatchID: fmt.Sprintf("%040x", 5000+n), Policy: "clean"}}
		line, _ := sealed(t, key, c.ID, c.Tree, p)
		previous = digestOf([]byte(named(n, line)))
		w.commits, w.lines = append(w.commits, c), append(w.lines, line)
	}
	last := w.commits[count-1]
	w.closing, _ = sealed(t, key, last.ID, last.Tree, Predicate{Session: "s", N: count + 1, Previous: previous, At: at, Closed: &Closed{Count: count, Head: previous}})
	first := w.commits[0]
	w.other, _ = sealed(t, newKey(t), first.ID, first.Tree, Predicate{Session: "s2", N: 1, At: at, Prison: prison, Landed: &Landed{Tree: "merged"}})
	w.put(w.lines, w.closing)
	return w
}

// put writes the notes: a line for each commit and its tree, and a closing one on the last of them.
func (w *world) put(lines []string, closing string) {
	w.notes = map[gitops.OID]string{}
	for n, c := range w.commits {
		for _, on := range []gitops.OID{c.ID, c.Tree} {
			if lines[n] != "" {
				w.notes[on] = AddLine("", lines[n])
			}
			if n == len(w.commits)-1 && closing != "" {
				w.notes[on] = AddLine(w.notes[on], closing)
			}
		}
	}
}

func (w *world) verdicts(t *testing.T, required string) (all []Verdict) {
	t.Helper()
	r, err := ParseRequirements(required)
	if err != nil {
		t.Fatal(err)
	}
	v := Verifier{Store: storeOf(w.notes), Required: r}
	for _, c := range w.commits {
		all = append(all, v.Verify(c))
	}
	return all
}

func TestSessionIsVerified(t *testing.T) {
	w := newWorld(t, 5)
	for n, v := range w.verdicts(t, "signed,contained,exact,network=none,closed") {
		if !v.Verified() || v.By != ByCommit || v.Level != LevelSelf || v.Chain.Length != 5 || v.Statement.Predicate.N != n+1 {
			t.Errorf("commit %d: %+v", n, v)
		}
	}
}

// TestMutationsAreNotAccepted changes the evidence of a closed session in thousands of ways. No commit of it is verified then.
func TestMutationsAreNotAccepted(t *testing.T) {
	mutations := 10_000
	if testing.Short() {
		mutations = 500
	}
	w := newWorld(t, 6)
	r := rand.New(rand.NewPCG(1, 2))
	kinds := map[string]int{}
	for range mutations {
		lines, closing := slices.Clone(w.lines), w.closing
		kind := mutate(t, r, &w, lines, &closing)
		if slices.Equal(lines, w.lines) && closing == w.closing {
			continue
		}
		kinds[kind]++
		w.put(lines, closing)
		for n, v := range w.verdicts(t, "closed") {
			if v.Verified() {
				t.Fatalf("%s: commit %d is accepted: %+v\n%s", kind, n, v, strings.Join(lines, "\n"))
			}
		}
	}
	t.Log(kinds)
}

// mutate changes lines in a random way and returns the name of the way.
func mutate(t *testing.T, r *rand.Rand, w *world, lines []string, closing *string) string {
	n, m := r.IntN(len(lines)), r.IntN(len(lines))
	target := &lines[n]
	if r.IntN(len(lines)+1) == 0 {
		target = closing
	}
	text := []byte(*target)
	switch r.IntN(9) {
	case 8:
		other := opened(t, *target)
		head, p := partsOf(t, other.Signatures[0].Sig)
		i := r.IntN(len(p))
		p[i] = grow(r, p[i])
		*target = withSignature(t, other, p.join(head))
		return "bytes in a part of the signature"
	case 0, 1, 2:
		text[r.IntN(len(text))] ^= 1 << r.IntN(8)
		*target = string(text)
		return "flipped bit"
	case 3:
		i := r.IntN(len(text))
		*target = string(slices.Delete(text, i, min(len(text), i+1+r.IntN(8))))
		return "cut bytes"
	case 4:
		*target = ""
		return "cut statement"
	case 5:
		lines[n], lines[m] = lines[m], lines[n]
		return "swapped"
	case 6:
		lines[n] = lines[m]
		return "replayed on another commit"
	default:
		i, j := r.IntN(len(text)), r.IntN(len(text))
		text[i], text[j] = text[j], text[i]
		*target = string(text)
		return "swapped bytes"
	}
}

func TestNewestStatementCanBeCutUntilClosed(t *testing.T) {
	w := newWorld(t, 4)
	lines := slices.Clone(w.lines)
	lines[3] = ""
	w.put(lines, "")
	for n, v := range w.verdicts(t, "") {
		if v.Verified() != (n < 3) {
			t.Errorf("commit %d: %+v", n, v)
		}
	}
	for _, v := range w.verdicts(t, "closed")[:3] {
		if v.Verified() || v.Missing() {
			t.Errorf("not closed: %+v", v)
		}
	}
}

// TestForeignStatement adds somebody else's statement about the first commit. It changes nothing about the session, and the
// statement that meets the requirements counts.
func TestForeignStatement(t *testing.T) {
	w := newWorld(t, 3)
	first := w.commits[0]
	w.notes[first.ID] = AddLine(w.notes[first.ID], w.other)
	// Somebody without the key writes another statement of the session, which has the signature of the first one.
	line, _, _ := strings.Cut(w.notes[first.ID], "\n")
	var e struct {
		Type       string            `json:"payloadType"`
		Payload    []byte            `json:"payload"`
		Signatures []json.RawMessage `json:"signatures"`
	}
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		t.Fatal(err)
	}
	e.Payload = bytes.Replace(e.Payload, []byte(`"at":"20`), []byte(`"at":"21`), 1)
	forged, err := json.Marshal(e)
	if err != nil || !bytes.Contains(e.Payload, []byte(`"at":"21`)) {
		t.Fatalf("%s, %v", e.Payload, err)
	}
	if _, err := Open(forged); err != nil {
		t.Fatal(err)
	}
	w.notes[first.ID] = AddLine(w.notes[first.ID], string(forged))
	for _, v := range w.verdicts(t, "exact,closed") {
		if !v.Verified() {
			t.Errorf("%+v", v)
		}
	}
}

func TestFindByTreeAndPatch(t *testing.T) {
	w := newWorld(t, 3)
	v := Verifier{Store: storeOf(w.notes)}
	squash := Commit{ID: id(900), Tree: w.commits[2].Tree, Patch: func() string { return "" }}
	if got := v.Verify(squash); !got.Verified() || got.By != ByTree {
		t.Errorf("squash: %+v", got)
	}
	picked := Commit{ID: id(901), Tree: id(902), Patch: func() string { return fmt.Sprintf("%040x", 5001) }}
	if got := v.Verify(picked); !got.Verified() || got.By != ByPatch || got.Statement.Predicate.N != 2 {
		t.Errorf("picked: %+v", got)
	}
	own := Commit{ID: id(903), Tree: id(904), Patch: func() string { return "none" }}
	if got := v.Verify(own); got.Verified() || !got.Missing() {
		t.Errorf("own commit: %+v", got)
	}
}

func TestCheckRequirement(t *testing.T) {
	key, c := newKey(t), Commit{ID: id(1), Tree: id(2), Patch: func() string { return "" }}
	const passed = "ad0eba3b2cd1a4a03a0f4d5f9e1f3f1d8a6b9d4f6d2b5a6c4f9e1f3f1d8a6b9d"
	command := "make test"
	line, _ := sealed(t, key, c.ID, c.Tree, Predicate{Session: "s", N: 1, At: at, Landed: &Landed{Tree: "exact",
		Checks: []Check{{Command: checks.Digest(command), Tree: c.Tree, Exit: 0, At: at}, {Command: checks.Digest("make lint"), Tree: c.Tree, Exit: 2, At: at}, {Command: passed, Tree: id(7)}}}})
	store := storeOf(map[gitops.OID]string{c.ID: line + "\n"})
	for text, want := range map[string][2]bool{"check=make test": {true, false}, "check=make lint": {false, false}, "check=make": {false, true}} {
		r, err := ParseRequirements(text)
		if err != nil {
			t.Fatal(err)
		}
		v := Verifier{Store: store, Required: r}
		if got := v.Verify(c); got.Verified() != want[0] || got.Missing() != want[1] {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

func TestSigners(t *testing.T) {
	key := newKey(t)
	line, _ := sealed(t, key, id(1), id(2), Predicate{Session: "s", N: 1, At: at, Landed: &Landed{Tree: "exact"}})
	e, err := Open([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	public := publicLine(e)
	for text, want := range map[string]string{
		"ada@example.com " + public:                                                            "ada@example.com",
		"# a comment\n\nada@example.com,bob " + public + " a comment":                          "ada@example.com,bob",
		`ada namespaces="git,git-*" ` + public:                                                 "ada",
		`ada namespaces="git" ` + public:                                                       "",
		`ada valid-after="20260101Z",valid-before="20270101Z" ` + public:                       "ada",
		`ada valid-after="20261101120001Z" ` + public:                                          "",
		`ada valid-before="202611011200Z" ` + public:                                           "",
		`"ada lovelace" ` + public:                                                             "ada lovelace",
		"bob ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEgSLcThOlm8hmGyGDm7nYXP2EvZJkW1xZ4tk+0+Jx7P": "",
	} {
		list, err := ParseSigners([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if got, _ := list.Who(e.Key, at); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"bob ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEgSLcThOlm8hmGyGDm7nYXP2EvZJkW1xZ4tk+0+Jx7P": "is not in the list of signers",
		`ada namespaces="*,!git-airlock" ` + public:                                            "is in the list of signers, but not for the namespace git-airlock",
		`ada valid-before="20261101115959Z" ` + public:                                         "is in the list of signers, but only until 2026-11-01T11:59:59Z, and the statement is of 2026-11-01T12:00:00Z",
		`ada valid-after="20261102Z" ` + public:                                                "is in the list of signers, but only from 2026-11-02T00:00:00Z on, and the statement is of 2026-11-01T12:00:00Z",
		"!ada " + public:                                                                       "is in the list of signers, but its principals match nobody",
	} {
		list, err := ParseSigners([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := list.Who(e.Key, at); err == nil || err.Error() != want || !Missing(err) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{"ada", "ada nonsense", "ada cert-authority " + public, `ada valid-after="soon" ` + public, public,
		"ada namespaces=git-airlock " + public, `ada namespaces="a",namespaces="git-airlock" ` + public, `a"da ` + public} {
		if _, err := ParseSigners([]byte("\n" + text)); err == nil || !strings.HasPrefix(err.Error(), "line 2: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestRequirementWords(t *testing.T) {
	for _, text := range []string{"sealed", "network", "network=", "exact=yes", "signed, check"} {
		if _, err := ParseRequirements(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	for _, x := range []struct {
		lists []string
		want  string
	}{
		{nil, ""},
		{[]string{"", ","}, ""},
		{[]string{" signed, network=open ,,"}, "signed|network=open"},
		{[]string{"signed", "exact,signed", "signed"}, "signed|exact"},
		{[]string{"exact, check=test 1,2 = 1,2, || a=b,closed ", "closed", "check=make"}, "exact|check=test 1,2 = 1,2, || a=b,closed|closed|check=make"},
	} {
		var got []string
		all, err := ParseRequirements(x.lists...)
		for _, r := range all {
			got = append(got, r.String())
		}
		if err != nil || strings.Join(got, "|") != x.want {
			t.Errorf("%q: %q %v", x.lists, got, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	key, _ := NewKey()
	signed, payload, _ := New(id(1), id(2), Predicate{Session: "s", N: 1, Landed: &Landed{}}).Payload()
	armored, _ := Sign(key, signed)
	line, _, _ := Seal(payload, armored)
	f.Add([]byte(line))
	f.Add([]byte(`{"payloadType":"application/vnd.in-toto+json","payload":"e30=","signatures":[{"keyid":"","sig":""}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := Open(data)
		if err == nil && e.Verify() == nil && string(data) != line && e.Fingerprint() == mustFingerprint(t, key) {
			t.Errorf("accepted: %q", data)
		}
		storeOf(map[gitops.OID]string{id(1): string(data)})
	})
}

// publicLine returns the public key of an envelope as in a file of keys.
func publicLine(e Envelope) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(e.Key)))
}

func mustFingerprint(t *testing.T, key []byte) string {
	t.Helper()
	text, err := KeyFingerprint(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestLongNotes(t *testing.T) {
	w := newWorld(t, 1)
	c := w.commits[0]
	w.notes[c.ID] = strings.Repeat("x\n", gitops.NoteLines) + w.lines[0] + "\n" + strings.Repeat("y", lineLimit+1)
	w.notes[c.Tree] = ""
	if v := w.verdicts(t, "")[0]; v.Verified() {
		t.Errorf("a line beyond the limit counts: %+v", v)
	}
}

// BenchmarkVerify measures what one commit of a session costs, without reading the notes.
func BenchmarkVerify(b *testing.B) {
	w := newWorld(b, 100)
	for b.Loop() {
		v := Verifier{Store: storeOf(w.notes)}
		for _, c := range w.commits {
			if got := v.Verify(c); !got.Verified() {
				b.Fatal(got.Faults)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(len(w.commits)), "us/commit")
}

// TestPredicateWithoutFacts checks that a statement has a list for each kind of fact, even if there is none.
func TestPredicateWithoutFacts(t *testing.T) {
	facts := &Landed{Reached: &Reached{}, Runs: []Run{{}}}
	content, err := json.Marshal(New("c", "t", Predicate{Landed: facts}))
	for _, field := range []string{`"weaker":[]`, `"without":[]`, `"hosts":[]`, `"checks":[]`, `"reviewers":[]`, `"record":""`} {
		if err != nil || !strings.Contains(string(content), field) {
			t.Errorf("no %s in %s, %v", field, content, err)
		}
	}
	if facts.Checks != nil || facts.Reached.Hosts != nil {
		t.Error("the facts have changed")
	}
}
