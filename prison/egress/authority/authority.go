// Package authority makes the certificates with which a network answers in the place of a server, so that it can decide about the
// requests inside TLS.
//
// A [Set] has an [Authority] for each name with rules about requests. The authority's certificate permits this name and the names below it
// (RFC 5280, section 4.2.1.10, critical), and no addresses. Programs inside that check this, such as those with OpenSSL, GnuTLS, Node and
// Go, refuse a certificate of the authority for any other name. A rule about another name adds an authority. Programs that have read the
// earlier ones lose nothing.
//
// Two processes have a key in memory: the network, which signs with it, and its holder, which only gives it to the successor of a network
// that was killed. A new key would need a new certificate, which a program that has read the old one does not trust: an agent that runs for
// hours would lose its connections each time. Deriving the key from another secret would only move the secret. The holder can do more harm
// with its rights over the prison than with this key. A prison that starts gets new authorities.
package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"
)

const (
	// lifetime is how long an authority is valid, which bounds how long a prison can run with the same one.
	lifetime = 365 * 24 * time.Hour
	// leafLifetime is how long a server's certificate is valid. It is replaced when only leafLeft remains.
	leafLifetime, leafLeft = 24 * time.Hour, 12 * time.Hour
	// early is how far the clock of a client may be behind.
	early = time.Hour
	// maxLeaves bounds the certificates in memory.
	maxLeaves = 256
	// maxCommonName is the maximum length of a common name (RFC 5280, appendix A.1).
	maxCommonName = 64
)

// Authority signs certificates for the servers of a name and of the names below it.
type Authority struct {
	name        string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey

	mu     sync.Mutex
	leaves map[string]*tls.Certificate
}

// create makes an authority for a canonical name and the names below it.
func create(name string, now time.Time) (*Authority, error) {
	if name == "" {
		return nil, errors.New("an authority without a name could vouch for all")
	}
	key, serial, err := newKey()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "Local CA"}, NotBefore: now.Add(-early), NotAfter: now.Add(lifetime),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		PermittedDNSDomainsCritical: true, PermittedDNSDomains: []string{name},
		ExcludedIPRanges: []*net.IPNet{{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}, {IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make authority: %w", err)
	}
	return assemble(der, key)
}

// parse returns an authority from the results of [Authority.Save].
func parse(certificate, key []byte) (*Authority, error) {
	k, err := x509.ParseECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("read the key of an authority: %w", err)
	}
	return assemble(certificate, k)
}

func assemble(der []byte, key *ecdsa.PrivateKey) (*Authority, error) {
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of an authority: %w", err)
	}
	if !key.PublicKey.Equal(c.PublicKey) {
		return nil, errors.New("the key of an authority is another one's")
	}
	if len(c.PermittedDNSDomains) != 1 {
		return nil, errors.New("an authority is for one name")
	}
	return &Authority{name: c.PermittedDNSDomains[0], certificate: c, key: key, leaves: map[string]*tls.Certificate{}}, nil
}

// Save returns the certificate and the key (DER) for a successor.
func (a *Authority) Save() (certificate, key []byte, err error) {
	key, err = x509.MarshalECPrivateKey(a.key)
	return a.certificate.Raw, key, err
}

// PEM returns the certificate, which programs inside must trust.
func (a *Authority) PEM() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw}))
}

// Leaf returns a certificate for the server of a canonical name.
func (a *Authority) Leaf(name string, now time.Time) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.leaves[name]; c != nil && c.Leaf.NotAfter.Sub(now) > leafLeft {
		return c, nil
	}
	key, serial, err := newKey()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, NotBefore: now.Add(-early), NotAfter: now.Add(leafLifetime), DNSNames: []string{name},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	if len(name) <= maxCommonName {
		template.Subject.CommonName = name
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	if len(a.leaves) >= maxLeaves {
		clear(a.leaves)
	}
	c := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
	a.leaves[name] = c
	return c, nil
}

// newKey returns a key, and a random serial number of 127 bits for its certificate (RFC 5280, section 4.1.2.2).
func newKey() (*ecdsa.PrivateKey, *big.Int, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	return key, serial, err
}
