package gitops

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// WriteFile replaces a file atomically and durably. It writes and syncs a new file, renames it to the name of the
// old one, and syncs the folder.
func WriteFile(name string, content []byte, mode os.FileMode) error {
	f, err := os.OpenFile(name+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(name+".new", name); err != nil {
		return err
	}
	return SyncPath(filepath.Dir(name))
}

// SyncPath makes a file's content or a folder's entries survive a power loss.
func SyncPath(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// syncEach is the number of files up to which each file is synced separately. For more files the whole file system
// is synced.
const syncEach = 16

// SyncFiles syncs the content of the named files below dir.
func SyncFiles(dir string, names []string) error {
	if len(names) > syncEach {
		return SyncFileSystem(dir)
	}
	for _, name := range names {
		full := filepath.Join(dir, name)
		info, err := os.Lstat(full)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue
		}
		if err := SyncPath(full); err != nil {
			return err
		}
	}
	return nil
}

// OtherDevice reports whether two paths are on different file systems.
func OtherDevice(a, b string) bool {
	var x, y syscall.Stat_t
	return syscall.Stat(a, &x) == nil && syscall.Stat(b, &y) == nil && x.Dev != y.Dev
}

// CopyFile creates a durable copy of a file or symbolic link.
func CopyFile(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = out.ReadFrom(in)
	return errors.Join(err, out.Sync(), out.Close())
}

// Unless returns err, or nil if err is the expected error.
func Unless(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// globQuotes is made once, because a replacer prepares 7 kB of tables.
var globQuotes = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// GlobQuote quotes the special characters of [filepath.Glob].
func GlobQuote(name string) string { return globQuotes.Replace(name) }

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
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	text := "airlock " + hex.EncodeToString(b[:]) + "\n"
	return text, WriteFile(TokenPath(dir), []byte(text), 0o600)
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
