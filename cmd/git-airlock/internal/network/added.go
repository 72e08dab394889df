package network

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/git-airlock/git-airlock/gitops/hostenv"
)

var (
	// bundles are the files with the certificates that a machine trusts, by distribution. The first one that exists counts.
	bundles = []string{
		"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
	}
	// shipped are the folders with the certificates that come with a distribution. Administrators add theirs elsewhere.
	shipped = []string{"/usr/share/ca-certificates", "/usr/share/pki"}
)

// Variables of the user that name files with certificates, as package crypto/x509 and OpenSSL read them.
const (
	fileVariable   = "SSL_CERT_FILE"
	folderVariable = "SSL_CERT_DIR" // several folders, separated by colons
)

const (
	maxBundle = 4 << 20 // bytes of a file with certificates
	maxAdded  = 1 << 20 // bytes of all certificates that are passed on
	maxFiles  = 1000    // in a folder
)

// Added returns the certificates (PEM) of authorities that the user's programs trust, and that do not come with the machine's distribution:
// those that an administrator has added to the machine, such as that of a company whose network reads TLS, and those of the user's
// variables. It leaves out certificates that are not in force, and those that give one of the names of the user or the machine away: mkcert,
// for example, makes such authorities. The result has nothing else from these files.
func Added(names []string, now time.Time) string {
	var candidates []*pem.Block
	for _, bundle := range bundles {
		if blocks, err := certificatesIn(bundle); err == nil {
			candidates = blocks
			break
		}
	}
	candidates = append(candidates, ofUser()...)
	if len(candidates) == 0 {
		return ""
	}
	known := map[string]bool{}
	for _, dir := range shipped {
		for _, b := range certificatesBelow(dir, nil) {
			known[string(b.Bytes)] = true
		}
	}
	var added []byte
	for _, b := range candidates {
		if known[string(b.Bytes)] {
			continue
		}
		known[string(b.Bytes)] = true
		if c, err := x509.ParseCertificate(b.Bytes); err != nil || now.After(c.NotAfter) || reveals(b.Bytes, names) {
			continue
		}
		text := pem.EncodeToMemory(&pem.Block{Type: b.Type, Bytes: b.Bytes}) // without the headers of the file
		if len(added)+len(text) > maxAdded {
			break
		}
		added = append(added, text...)
	}
	return string(added)
}

// ofUser returns the certificates of the user's variables. A file in a work tree is not read, because an agent could write it. Folders of
// OpenSSL consist of links, so each file is compared by itself.
func ofUser() (all []*pem.Block) {
	if file, _ := hostenv.Original(fileVariable); filepath.IsAbs(file) && !hostenv.Inside(file) {
		all, _ = certificatesIn(file) // other programs of the user report that it cannot be read
	}
	folders, _ := hostenv.Original(folderVariable)
	for _, dir := range filepath.SplitList(folders) {
		if filepath.IsAbs(dir) && !hostenv.Inside(dir) {
			all = append(all, certificatesBelow(dir, hostenv.Inside)...)
		}
	}
	return all
}

// certificatesIn returns the certificates in a file.
func certificatesIn(name string) (all []*pem.Block, err error) {
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrInvalid // opening a pipe would wait
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxBundle))
	for {
		var b *pem.Block
		if b, content = pem.Decode(content); b == nil {
			return all, err
		}
		if b.Type == "CERTIFICATE" {
			all = append(all, b)
		}
	}
}

// certificatesBelow returns the certificates in the files of a folder and its subfolders, except those for which skip, if not nil, returns
// true. The folder can be a link, as /etc/ssl/certs is in Fedora. Below the folder, links to files are followed, but not links to folders.
func certificatesBelow(dir string, skip func(file string) bool) (all []*pem.Block) {
	dir, err := filepath.EvalSymlinks(dir) // because WalkDir does not follow a link
	if err != nil {
		return nil
	}
	files := 0
	filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error { //nolint:errcheck // a folder that cannot be read has none
		if err != nil || e.IsDir() {
			return nil
		}
		if files++; files > maxFiles {
			return fs.SkipAll
		}
		if skip != nil && skip(name) {
			return nil
		}
		blocks, _ := certificatesIn(name)
		all = append(all, blocks...)
		return nil
	})
	return all
}

// reveals reports whether a certificate has one of some names beside an @, as in the address of the user at the machine.
func reveals(certificate []byte, names []string) bool {
	text := bytes.ToLower(certificate)
	return slices.ContainsFunc(names, func(name string) bool {
		lower := bytes.ToLower([]byte(name))
		return name != "" && (bytes.Contains(text, append(slices.Clone(lower), '@')) || bytes.Contains(text, append([]byte("@"), lower...)))
	})
}
