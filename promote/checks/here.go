package checks

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/git-airlock/git-airlock/gitops"
)

// hereLimit bounds the file of results. At this size the older half of it is removed, so that those trees are checked again.
const hereLimit = 512 << 10

// hereFile is the file in the git directory with the results of the checks that the user of this process has run in the repository, one a
// line, as in the notes. It is not in the folder of an airlock, so that the results also hold after clear. No other user can read it, so that
// each user has a file.
func hereFile(repo *gitops.Repository) string {
	return filepath.Join(repo.CommonDir, fmt.Sprintf("airlock-checks-%d", os.Geteuid()))
}

// Keep adds the result of a check that ran here to those of [Here].
func Keep(repo *gitops.Repository, r Result) (err error) {
	r.stamp()
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("keep the result of a check: %w", err)
		}
	}()
	f, err := os.OpenFile(hereFile(repo), os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil { // others may be shortening the file
		return err
	}
	// The first newline ends a line that a full disk has cut short.
	line = append(append([]byte{'\n'}, line...), '\n')
	if err := shorten(f, len(line)); err != nil {
		return err
	}
	_, err = f.Write(line)
	return err
}

// shorten makes room for some bytes. A kill in the middle only loses results.
func shorten(f *os.File, more int) error {
	info, err := f.Stat()
	if err != nil || info.Size()+int64(more) <= hereLimit {
		return err
	}
	kept := make([]byte, hereLimit/2)
	n, err := f.ReadAt(kept, max(0, info.Size()-int64(len(kept))))
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	_, kept, _ = bytes.Cut(kept[:n], []byte{'\n'}) // the first line may not be whole
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.Write(kept)
	return err
}

// Here returns the results of checks that ran in this repository, by tree. For each command and system it returns the newest result. Only
// these results save a check, open the gate and get into evidence: the results in notes may come from anyone who can push notes.
func Here(repo *gitops.Repository) (map[gitops.OID][]Result, error) {
	f, err := os.Open(hereFile(repo))
	if err != nil {
		return nil, gitops.Unless(err, fs.ErrNotExist)
	}
	defer f.Close()
	all := map[gitops.OID][]Result{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var r Result
		if json.Unmarshal(lines.Bytes(), &r) != nil || r.Version != version {
			continue
		}
		all[r.Tree] = append(slices.DeleteFunc(all[r.Tree], r.replaces), r)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the results of checks: %w", err)
	}
	return all, nil
}
