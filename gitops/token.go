package gitops

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
)

// Token returns a text that is drawn once for each directory of host state and kept there. Our lock on an index holds it, so
// that a lock left by a crash at any moment proves whose it is.
func Token(dir string) (string, error) {
	content, err := os.ReadFile(TokenPath(dir))
	if err == nil && len(content) > 0 {
		return string(content), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	text := "airlock " + hex.EncodeToString(b[:]) + "\n"
	return text, WriteFile(TokenPath(dir), []byte(text), 0o600)
}

// TokenPath is the file that keeps the token of a directory.
func TokenPath(dir string) string { return filepath.Join(dir, "token") }

// HasJournal reports whether a landing of this host state is not finished.
func HasJournal(dir string) bool {
	_, err := os.Lstat(JournalPath(dir))
	return err == nil
}

// JournalPath is the file of the journal of a landing.
func JournalPath(dir string) string { return filepath.Join(dir, "journal") }
