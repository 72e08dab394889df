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
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/git-airlock/git-airlock/gitops/hostenv"
)

var (
	// bundles are the files with the certificates that a machine trusts, by distribution. The first one that exists counts.
	bundles = []string{
		"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
	}
	// shipped are the folders with the certificates that come with a distribution. Administrators add theirs elsewhere. Where these folders
	// have no certificate, a bundle does not show which of its certificates were added.
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

// Added returns the certificates (PEM) of authorities that the user's programs trust, and that do not come with the distribution. An
// administrator has added them to the machine, as for a company whose network reads TLS, or a variable of the user names their file. Added
// leaves out expired certificates. It also leaves out certificates that contain the name of the host or a name of the user, such as those of
// mkcert. The result has nothing else from these files.
func Added(host string, users []string, now time.Time) string {
	known := map[string]bool{}
	for _, dir := range shipped {
		for _, b := range certificatesBelow(dir, nil) {
			known[string(b.Bytes)] = true
		}
	}
	candidates := ofUser()
	if len(known) > 0 { // otherwise all public authorities would count as added, as with NixOS, which has these certificates elsewhere
		candidates = append(ofMachine(), candidates...)
	}
	var added []byte
	for _, b := range candidates {
		if known[string(b.Bytes)] {
			continue
		}
		known[string(b.Bytes)] = true
		if c, err := x509.ParseCertificate(b.Bytes); err != nil || now.After(c.NotAfter) || reveals(c, host, users) {
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

func ofMachine() []*pem.Block {
	for _, bundle := range bundles {
		if blocks, err := certificatesIn(bundle); err == nil {
			return blocks
		}
	}
	return nil
}

// ofUser returns the certificates in the files that the user's variables name. It does not read a file in a work tree, because an agent could
// write it. A folder for OpenSSL contains links, so ofUser checks where each file is.
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

// generic are names of hosts and users that identify nobody, and that are also in the names of many authorities.
var generic = []string{"admin", "ca", "host", "local", "localhost", "root", "server", "test", "user"}

// shortUser is the number of letters of a user's name below which the name counts only beside an @, because short names are words, too.
const shortUser = 4

// reveals reports whether a certificate contains the name of the host or a name of the user. The name must be whole words in the names and
// addresses of the certificate, or stand beside an @ anywhere.
func reveals(c *x509.Certificate, host string, users []string) bool {
	text, names := bytes.ToLower(c.Raw), namesIn(c)
	return slices.ContainsFunc(append(slices.Clone(users), host), func(name string) bool {
		name = strings.ToLower(name)
		if name == "" {
			return false
		}
		if bytes.Contains(text, []byte(name+"@")) || bytes.Contains(text, []byte("@"+name)) {
			return true
		}
		if slices.Contains(generic, name) || name != strings.ToLower(host) && utf8.RuneCountInString(name) < shortUser {
			return false
		}
		wanted := wordsOf(name)
		return len(wanted) > 0 && slices.ContainsFunc(names, func(n []string) bool { return contains(n, wanted) })
	})
}

// namesIn returns the words of each name and address in a certificate.
func namesIn(c *x509.Certificate) (all [][]string) {
	for _, a := range append(slices.Clone(c.Subject.Names), c.Issuer.Names...) {
		if value, ok := a.Value.(string); ok {
			all = append(all, wordsOf(value))
		}
	}
	for _, name := range slices.Concat(c.DNSNames, c.EmailAddresses, c.PermittedDNSDomains) {
		all = append(all, wordsOf(name))
	}
	return all
}

// wordsOf returns the words of a name in lower case. The labels of a host's name are words.
func wordsOf(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r != '-' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// contains reports whether words are side by side in others.
func contains(others, words []string) bool {
	for i := range len(others) - len(words) + 1 {
		if slices.Equal(others[i:i+len(words)], words) {
			return true
		}
	}
	return false
}
