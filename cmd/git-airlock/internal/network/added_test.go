package network

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// certificate returns a certificate of an authority (PEM).
func certificate(t *testing.T, unit string, until time.Time) string {
	t.Helper()
	return signed(t, &x509.Certificate{
		Subject:   pkix.Name{CommonName: "Root", OrganizationalUnit: []string{unit}},
		NotBefore: until.Add(-time.Hour), NotAfter: until,
	})
}

// signed returns a certificate (PEM) that its own key has signed.
func signed(t *testing.T, c *x509.Certificate) string {
	t.Helper()
	c.SerialNumber, c.IsCA, c.BasicConstraintsValid = big.NewInt(1), true, true
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// TestAdded has files of a machine and its user with certificates that go inside, and with others and other text that do not.
func TestAdded(t *testing.T) {
	now := time.Now()
	later := now.Add(time.Minute)
	public, corp, users, folder := certificate(t, "public", later), certificate(t, "it@corp.test", later), certificate(t, "user's", later), certificate(t, "folder", later)
	dir := t.TempDir()
	write := func(name string, content ...string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Join(content, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("secret")}))
	labelled := strings.Replace(corp, "CERTIFICATE-----\n", "CERTIFICATE-----\nOwner: Jane\n\n", 1)
	write("shipped/mozilla/public.crt", public)
	setFor(t, &bundles, filepath.Join(dir, "none.crt"), write("bundle.crt", "# by Jane\n", public, labelled, corp, certificate(t, "JDoe@laptop (Jane)", later)))
	setFor(t, &shipped, filepath.Join(dir, "shipped"), filepath.Join(dir, "none"))
	t.Setenv(fileVariable, write("users.pem", users, key, certificate(t, "old", now.Add(-time.Second)), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	linked := filepath.Join(dir, "linked") // as c_rehash makes it: the folder is a link, and the file in it is one
	link(t, filepath.Dir(write("folder/README", "")), linked)
	link(t, write("elsewhere/1.pem", folder, public), filepath.Join(linked, "0a1b2c3d.0"))
	link(t, filepath.Join(dir, "nowhere"), filepath.Join(linked, "1a1b2c3d.0"))
	t.Setenv(folderVariable, filepath.Join(dir, "nowhere")+":"+linked)
	names := []string{"", "jdoe", "Jane Doe"}
	if got := Added("laptop", names, now); got != corp+users+folder {
		t.Errorf("got\n%s\nwant\n%s", got, corp+users+folder)
	}
	setFor(t, &shipped, filepath.Join(dir, "none"))
	if got, want := Added("laptop", names, now), users+folder+public; got != want {
		t.Errorf("without the distribution's certificates:\n%s\nwant\n%s", got, want)
	}
	setFor(t, &shipped, filepath.Join(dir, "shipped"))
	t.Setenv(fileVariable, "users.pem")
	t.Setenv(folderVariable, "")
	if got := Added("laptop", names, now); got != corp {
		t.Errorf("without the user's files:\n%s", got)
	}
	setFor(t, &bundles)
	if got := Added("laptop", names, now); got != "" {
		t.Errorf("without files: %q", got)
	}
}

// TestReveals has names of certificates beside the names of the host vm1, of its user and of root.
func TestReveals(t *testing.T) {
	users := []string{"", "root", "jdoe", "ann", "j.smith", "Jané Doe"}
	for _, x := range []struct {
		subject  pkix.Name
		dns      []string
		mail     []string
		withheld bool
	}{
		{subject: pkix.Name{CommonName: "VM1"}, withheld: true},
		{subject: pkix.Name{CommonName: "vm1.home.lan"}, withheld: true},
		{subject: pkix.Name{CommonName: "CA of vm1 (own)"}, withheld: true},
		{subject: pkix.Name{CommonName: "vm10 CA"}},
		{subject: pkix.Name{CommonName: "corp-vm1-gateway.corp.test"}},
		{subject: pkix.Name{CommonName: "JANÉ DOE root CA"}, withheld: true},
		{subject: pkix.Name{CommonName: "Jané Doering CA"}},
		{subject: pkix.Name{CommonName: "Doe Jané CA"}},
		{subject: pkix.Name{Organization: []string{"Corp", "of jdoe"}}, withheld: true},
		{subject: pkix.Name{OrganizationalUnit: []string{"J.Smith"}}, withheld: true},
		{subject: pkix.Name{OrganizationalUnit: []string{"jdoes"}}},
		{subject: pkix.Name{CommonName: "Corp Root CA"}}, // the user root
		{subject: pkix.Name{CommonName: "Ann Corp CA"}},  // three letters
		{subject: pkix.Name{CommonName: "ann@corp.test"}, withheld: true},
		{subject: pkix.Name{CommonName: "Corp"}, dns: []string{"corp.test", "vm1.corp.test"}, withheld: true},
		{subject: pkix.Name{CommonName: "Corp"}, mail: []string{"it@corp.test", "me@jdoe.test"}, withheld: true},
		{subject: pkix.Name{CommonName: "Corp"}, dns: []string{"corp.test"}, mail: []string{"it@corp.test"}},
	} {
		now := time.Now()
		text := signed(t, &x509.Certificate{Subject: x.subject, DNSNames: x.dns, EmailAddresses: x.mail, NotBefore: now, NotAfter: now.Add(time.Hour)})
		b, _ := pem.Decode([]byte(text))
		c, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if got := reveals(c, "vm1", users); got != x.withheld {
			t.Errorf("%s, %q, %q: %t", x.subject, x.dns, x.mail, got)
		}
	}
}

func link(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

// setFor sets a list for the duration of a test.
func setFor(t *testing.T, list *[]string, values ...string) {
	t.Helper()
	before := *list
	*list = values
	t.Cleanup(func() { *list = before })
}
