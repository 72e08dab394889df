package gitops

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"

	"github.com/git-airlock/git-airlock/gitops/durable"
)

// Token returns a random text that is chosen once for each directory of host state and stored there. Our lock file
// on an index contains the token, which shows after a crash at any moment that the lock is ours.
func Token(dir string) (string, error) {
	content, err := os.ReadFile(TokenPath(dir))
	if err == nil && len(content) > 0 {
		return string(content), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	text := "airlock " + rand.Text() + "\n"
	return text, durable.WriteFile(TokenPath(dir), []byte(text), 0o600)
}

// TokenPath returns the file that contains the token of a directory.
func TokenPath(dir string) string { return filepath.Join(dir, "token") }

// HasJournal reports whether a landing of this host state is unfinished.
func HasJournal(dir string) bool {
	_, err := os.Lstat(JournalPath(dir))
	return err == nil
}

// JournalPath returns the path of a landing's journal.
func JournalPath(dir string) string { return filepath.Join(dir, "journal") }
