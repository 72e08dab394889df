package evidence

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// keysOfAllKinds returns private keys, by the names of their kinds.
func keysOfAllKinds(t *testing.T) map[string][]byte {
	t.Helper()
	keys := map[string][]byte{"ed25519": newKey(t)}
	put := func(name string, key any, err error) {
		if err != nil {
			t.Fatal(err)
		}
		block, err := ssh.MarshalPrivateKey(key, "")
		if err != nil {
			t.Fatal(err)
		}
		keys[name] = pem.EncodeToMemory(block)
	}
	for name, curve := range map[string]elliptic.Curve{"ecdsa256": elliptic.P256(), "ecdsa521": elliptic.P521()} {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		put(name, key, err)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	put("rsa", key, err)
	return keys
}

// parts are the strings of a signature of SSH, see PROTOCOL.sshsig. The last one is the signature itself.
type parts [][]byte

const sshsigHead = 10 // bytes: the magic preamble and the version

func partsOf(t *testing.T, armored []byte) (head []byte, p parts) {
	t.Helper()
	block, _ := pem.Decode(armored)
	head, rest := block.Bytes[:sshsigHead], block.Bytes[sshsigHead:]
	for len(rest) > 0 {
		var next struct {
			Part []byte
			Rest []byte `ssh:"rest"`
		}
		if err := ssh.Unmarshal(rest, &next); err != nil {
			t.Fatal(err)
		}
		p, rest = append(p, next.Part), next.Rest
	}
	return head, p
}

func (p parts) join(head []byte) []byte {
	all := slices.Clone(head)
	for _, part := range p {
		all = append(all, ssh.Marshal(struct{ Part []byte }{part})...)
	}
	return pem.EncodeToMemory(&pem.Block{Type: sshsig.PEMType, Bytes: all})
}

// opened returns the envelope of a line without any check.
func opened(t *testing.T, line string) (w wire) {
	t.Helper()
	if err := json.Unmarshal([]byte(line), &w); err != nil {
		t.Fatal(err)
	}
	return w
}

// withSignature returns a line with another armored signature.
func withSignature(t *testing.T, w wire, armored []byte) string {
	t.Helper()
	w.Signatures = []signature{{w.Signatures[0].KeyID, armored}}
	line, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	return string(line)
}

// otherForm returns a line with the signature (r, n-s) instead of (r, s), and the line itself if the signature is not of ECDSA.
func otherForm(t *testing.T, line string) string {
	t.Helper()
	w := opened(t, line)
	sig, err := sshsig.Unarmor(w.Signatures[0].Sig)
	if err != nil {
		t.Fatal(err)
	}
	curve := curves[sig.Signature.Format]
	if curve == nil {
		return line
	}
	var pair struct{ R, S *big.Int }
	if err := ssh.Unmarshal(sig.Signature.Blob, &pair); err != nil {
		t.Fatal(err)
	}
	pair.S.Sub(curve.Params().N, pair.S)
	sig.Signature.Blob = ssh.Marshal(pair)
	return withSignature(t, w, sshsig.Armor(sig))
}

// grow adds bytes in front of a text or behind it. Zeros in front are another form of a number.
func grow(r *mathrand.Rand, text []byte) []byte {
	more := make([]byte, 1+r.IntN(4))
	if r.IntN(2) == 0 {
		return slices.Concat(more, text)
	}
	for i := range more {
		more[i] = byte(r.IntN(256))
	}
	return slices.Concat(text, more)
}

// otherLine returns a line that differs from an envelope, but may mean the same, and the way in which it differs.
func otherLine(t *testing.T, r *mathrand.Rand, line string) (other, kind string) {
	t.Helper()
	w := opened(t, line)
	head, p := partsOf(t, w.Signatures[0].Sig)
	var sig struct { // the last part
		Format, Blob []byte
		Rest         []byte `ssh:"rest"`
	}
	last := &p[len(p)-1]
	if err := ssh.Unmarshal(*last, &sig); err != nil {
		t.Fatal(err)
	}
	switch r.IntN(9) {
	case 0:
		text := []byte(line)
		text[r.IntN(len(text))] ^= 1 << r.IntN(8)
		return string(text), "flipped bit of the line"
	case 1:
		part := p[r.IntN(len(p))]
		if len(part) > 0 {
			part[r.IntN(len(part))] ^= 1 << r.IntN(8)
		}
		kind = "flipped bit of the signature"
	case 2:
		part := &p[r.IntN(len(p))]
		*part, kind = grow(r, *part), "longer part"
	case 3:
		sig.Rest = grow(r, sig.Rest)
		*last, kind = ssh.Marshal(sig), "bytes behind the signature"
	case 4:
		sig.Blob = grow(r, sig.Blob)
		*last, kind = ssh.Marshal(sig), "longer signature"
	case 5:
		sig.Blob = bytes.TrimLeft(sig.Blob, "\x00")[:max(1, len(sig.Blob)-r.IntN(2))]
		*last, kind = ssh.Marshal(sig), "shorter signature"
	case 6:
		var pair struct{ R, S []byte }
		if ssh.Unmarshal(sig.Blob, &pair) == nil { // of ECDSA
			pair.R, pair.S = slices.Concat(make([]byte, r.IntN(2)), pair.R), slices.Concat(make([]byte, r.IntN(2)), pair.S)
			sig.Blob = ssh.Marshal(pair)
		}
		*last, kind = ssh.Marshal(sig), "longer numbers"
	case 7:
		sig.Format = []byte([]string{ssh.KeyAlgoRSA, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256, "ssh-dss"}[r.IntN(5)])
		*last, kind = ssh.Marshal(sig), "another format"
	default:
		return otherForm(t, line), "(r, n-s)"
	}
	return withSignature(t, w, p.join(head)), kind
}

// keygenKnows reports whether ssh-keygen accepts the signature of a line.
func keygenKnows(t *testing.T, line string) bool {
	t.Helper()
	w, file := opened(t, line), filepath.Join(t.TempDir(), "sig")
	if err := os.WriteFile(file, w.Signatures[0].Sig, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("ssh-keygen", "-Y", "check-novalidate", "-n", Namespace, "-s", file)
	cmd.Stdin = bytes.NewReader(encoded(w.Payload))
	return cmd.Run() == nil
}

// TestFormsOfEnvelopes makes other forms of the lines of a closed session, for keys of each kind. Beside the honest line, another form does no harm. In
// its place, a form is accepted only if ssh-keygen accepts the same payload with the same key, which is so for (r, n-s) of ECDSA.
func TestFormsOfEnvelopes(t *testing.T) {
	needKeygen(t)
	count := 1_000
	if testing.Short() {
		count = 200
	}
	for name, key := range keysOfAllKinds(t) {
		t.Run(name, func(t *testing.T) {
			count := count
			w := worldOf(t, key, 2)
			r, kinds, accepted := mathrand.New(mathrand.NewPCG(3, uint64(len(name)))), map[string]int{}, map[string]bool{}
			if name == "ecdsa521" { // a slow curve
				count /= 4
			}
			for range count {
				n := r.IntN(len(w.lines) + 1)
				lines, closing := slices.Clone(w.lines), w.closing
				target := &closing
				if n < len(lines) {
					target = &lines[n]
				}
				honest := *target
				other, kind := otherLine(t, r, honest)
				if other == honest || strings.Contains(other, "\n") {
					continue
				}
				kinds[kind]++
				*target = other
				w.put(lines, closing)
				verified := 0
				for _, v := range w.verdicts(t, "closed") {
					if v.Verified() {
						verified++
					}
				}
				if e, err := Open([]byte(other)); verified > 0 && (err != nil || string(e.signed) != string(encoded(opened(t, honest).Payload))) {
					t.Fatalf("%s: accepted in place: %s", kind, other)
				}
				if verified > 0 {
					accepted[other] = true
				}
				w.put(w.lines, w.closing)
				on := w.commits[min(n, len(w.commits)-1)]
				w.notes[on.ID], w.notes[on.Tree] = AddLine(w.notes[on.ID], other), AddLine(w.notes[on.Tree], other)
				for _, v := range w.verdicts(t, "closed") {
					if !v.Verified() {
						t.Fatalf("%s: beside the honest line: %v\n%s", kind, v.Faults, other)
					}
				}
			}
			for line := range accepted {
				if !keygenKnows(t, line) {
					t.Errorf("accepted, but not by ssh-keygen: %s", line)
				}
			}
			if most := len(w.lines) + 1; strings.HasPrefix(name, "ecdsa") != (len(accepted) > 0) || len(accepted) > most {
				t.Errorf("%d forms are accepted in place of the honest line, %v", len(accepted), kinds)
			}
			t.Log(kinds)
		})
	}
}

// TestChainOfOtherForms verifies sessions whose statements name either form of the one before, and those with a statement that was signed twice.
func TestChainOfOtherForms(t *testing.T) {
	for name, key := range keysOfAllKinds(t) {
		for forms := range 1 << 3 { // bits: the form that the next statement names
			w := worldNaming(t, key, 3, func(n int, line string) string {
				if forms>>n&1 == 1 {
					return otherForm(t, line)
				}
				return line
			})
			again, _ := sealed(t, key, w.commits[0].ID, w.commits[0].Tree, predicateOf(t, w.lines[0]))
			w.notes[w.commits[0].ID] = AddLine(w.notes[w.commits[0].ID], again)
			for _, v := range w.verdicts(t, "closed") {
				if !v.Verified() {
					t.Errorf("%s, forms %b: %v", name, forms, v.Faults)
				}
			}
		}
	}
}

// predicateOf returns the predicate of a line.
func predicateOf(t *testing.T, line string) Predicate {
	t.Helper()
	e, err := Open([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	return e.Statement.Predicate
}

// TestShortRSA seals a signature from which an agent of SSH left a zero out, in the one form that counts.
func TestShortRSA(t *testing.T) {
	key := keysOfAllKinds(t)["rsa"]
	for n := range 10_000 {
		signed, payload, err := New(id(1), id(2), Predicate{Session: fmt.Sprint(n), N: 1, At: at, Landed: &Landed{}}).Payload()
		if err != nil {
			t.Fatal(err)
		}
		armored, err := Sign(key, signed)
		if err != nil {
			t.Fatal(err)
		}
		sig, err := sshsig.Unarmor(armored)
		if err != nil {
			t.Fatal(err)
		}
		if sig.Signature.Blob[0] != 0 {
			continue
		}
		want, _, err := Seal(payload, armored)
		sig.Signature.Blob = sig.Signature.Blob[1:]
		got, _, shortErr := Seal(payload, sshsig.Armor(sig))
		if err != nil || shortErr != nil || got != want {
			t.Errorf("%v, %v\n%s\n%s", err, shortErr, got, want)
		}
		if _, err := Open([]byte(withSignature(t, opened(t, want), sshsig.Armor(sig)))); err == nil {
			t.Error("the short form is accepted")
		}
		return
	}
	t.Fatal("no signature begins with a zero")
}

// TestFormOfSecurityKeys checks the length of what a security key adds behind a signature.
func TestFormOfSecurityKeys(t *testing.T) {
	pair := ssh.Marshal(struct{ R, S *big.Int }{big.NewInt(5), big.NewInt(7)})
	for format, blob := range map[string][]byte{ssh.KeyAlgoSKED25519: make([]byte, edSize), ssh.KeyAlgoSKECDSA256: pair} {
		for n := range 9 {
			_, err := exactForms(&sshsig.Signature{Signature: &ssh.Signature{Format: format, Blob: blob, Rest: make([]byte, n)}})
			if (err == nil) != (n == touchSize) {
				t.Errorf("%s with %d bytes: %v", format, n, err)
			}
		}
	}
}
