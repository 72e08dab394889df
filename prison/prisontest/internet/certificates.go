package internet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// servedNames are the names in the servers' certificate, in addition to those of the registries and of the file names.
var servedNames = []string{"files.test", "api.test", "evil.test", "*.a.test", "paths.test", "key.test", "scoped.test", "limited.test", "plain.test", "keylan.test", "expired.test", "asks.test"}

// tlsConfig makes certificates, and logs each TLS hello. It writes the certificate of the good authority into the file ca.pem of the
// folder. Some names have a bad certificate: that of expired.test is old, that of nameless.test is for other names, and that of
// stranger.test is of an unknown authority. asks.test requires a certificate of the client.
func tlsConfig(folder string, others []string) *tls.Config {
	now := time.Now()
	authority := newCertificate(nil, now.Add(time.Hour), nil)
	server := newCertificate(&authority, now.Add(time.Hour), slices.Concat(servedNames, others))
	content := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Certificate[0]})
	must(os.WriteFile(filepath.Join(folder, "ca.pem"), content, 0o644))
	expired := newCertificate(&authority, now.Add(-time.Minute), servedNames)
	stranger := newCertificate(nil, now.Add(time.Hour), []string{"stranger.test"})
	hellos := logOf(folder, "tls")
	return &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		hellos.Print(h.ServerName, " ", strings.Join(h.SupportedProtos, " "))
		c := &tls.Config{Certificates: []tls.Certificate{server}}
		switch h.ServerName {
		case "expired.test":
			c.Certificates = []tls.Certificate{expired}
		case "stranger.test":
			c.Certificates = []tls.Certificate{stranger}
		case "asks.test":
			c.ClientAuth = tls.RequireAnyClientCert
		}
		return c, nil
	}}
}

// newCertificate makes a certificate for names. The authority signs it; without one, it is an authority itself.
func newCertificate(authority *tls.Certificate, until time.Time, names []string) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "internet"}, NotBefore: until.Add(-2 * time.Hour), NotAfter: until,
		IsCA: authority == nil, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, DNSNames: names,
	}
	parent, signer := template, key
	if authority != nil {
		template.KeyUsage = x509.KeyUsageDigitalSignature
		template.Subject.CommonName = "a server of internet" // a certificate with its issuer's name counts as self-signed
		parent, err = x509.ParseCertificate(authority.Certificate[0])
		must(err)
		signer = authority.PrivateKey.(*ecdsa.PrivateKey)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	must(err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
