package authority

import (
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
)

// trusts reports whether a program that trusts only an authority accepts its certificate for a name.
func trusts(t *testing.T, a *Authority, name string) error {
	t.Helper()
	c, err := a.Leaf(name, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(a.PEM())) {
		t.Fatal("no certificate")
	}
	_, err = c.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots})
	return err
}

func TestAuthorityVouchesForItsNameOnly(t *testing.T) {
	a, err := create("files.test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"files.test": true, "www.files.test": true, "evil.test": false, "evilfiles.test": false, "test": false} {
		if err := trusts(t, a, name); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !a.certificate.PermittedDNSDomainsCritical || strings.Contains(a.PEM(), "KEY") {
		t.Error("the constraint is not critical, or the key is public")
	}
	if _, err := create("", time.Now()); err == nil {
		t.Error("an authority without a name")
	}
}

func TestAuthorityIsKept(t *testing.T) {
	var a, b, other Set
	for _, s := range []*Set{&a, &other} {
		if err := s.Update([]string{"files.test", "a.test"}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	saved, err := a.Save()
	if err != nil || len(saved) != 2 {
		t.Fatal(saved, err)
	}
	if err := b.Load(saved); err != nil || b.PEM() != a.PEM() || b.PEM() == other.PEM() {
		t.Errorf("%v, %s", err, b.PEM())
	}
	wrong, err := other.Save()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []control.Authority{{Certificate: saved[0].Certificate, Key: wrong[0].Key}, {Certificate: saved[0].Certificate}, {Key: saved[0].Key}} {
		if err := b.Load([]control.Authority{c}); err == nil {
			t.Errorf("%x is an authority", c)
		}
	}
}

// TestSetFollowsNames checks that a change of names keeps the authorities of the others.
func TestSetFollowsNames(t *testing.T) {
	var s Set
	now := time.Now()
	if _, err := s.Leaf("a.test", now); err == nil || s.PEM() != "" {
		t.Error("an empty set has an authority")
	}
	update := func(names ...string) {
		t.Helper()
		if err := s.Update(names, now); err != nil {
			t.Errorf("%q: %v", names, err)
		}
	}
	update("a.test")
	first := s.PEM()
	update("a.test", "a.test")
	if s.PEM() != first {
		t.Error("the first authority was replaced")
	}
	update("a.test", "b.test")
	if !strings.HasPrefix(s.PEM(), first) || s.PEM() == first {
		t.Error("the first authority was replaced, or no second one was added")
	}
	for name, want := range map[string]bool{"b.test": true, "x.y.a.test": true, "c.test": false, "test": false} {
		if _, err := s.Leaf(name, now); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	update("a.test")
	if s.PEM() != first {
		t.Error("the first authority was replaced")
	}
	if err := s.Update(make([]string, maxNames+1), now); err == nil || s.PEM() != first {
		t.Error("too many names")
	}
}

// TestCertificatesAreReused checks that a certificate is used again until it ends soon, and that their number is bounded.
func TestCertificatesAreReused(t *testing.T) {
	now := time.Now()
	a, err := create("files.test", now)
	if err != nil {
		t.Fatal(err)
	}
	at := func(now time.Time) string {
		c, err := a.Leaf("files.test", now)
		if err != nil {
			t.Fatal(err)
		}
		return c.Leaf.SerialNumber.String()
	}
	first := at(now)
	if at(now.Add(leafLeft/2)) != first || at(now.Add(leafLifetime)) == first {
		t.Error("a certificate is made too often, or not when it ends")
	}
	for i := range 2 * maxLeaves {
		if _, err := a.Leaf(strings.Repeat("x", i%60+1)+".files.test", now.Add(time.Duration(i/60)*leafLifetime)); err != nil {
			t.Fatal(err)
		}
	}
	if len(a.leaves) > maxLeaves {
		t.Errorf("%d certificates", len(a.leaves))
	}
}
