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
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Root", OrganizationalUnit: []string{unit}}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: until.Add(-time.Hour), NotAfter: until,
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
	names := []string{"", "jdoe", "laptop", "Jane Doe"}
	if got := Added(names, now); got != corp+users+folder {
		t.Errorf("got\n%s\nwant\n%s", got, corp+users+folder)
	}
	t.Setenv(fileVariable, "users.pem")
	t.Setenv(folderVariable, "")
	if got := Added(names, now); got != corp {
		t.Errorf("without the user's files:\n%s", got)
	}
	setFor(t, &bundles)
	if got := Added(names, now); got != "" {
		t.Errorf("without files: %q", got)
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
