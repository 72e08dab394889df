package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/git-airlock/git-airlock/prison/egress/control"
)

// The lines of refusals by a rule that denies are in a file of their own as well, so that other lines do not push them out. It is rotated like
// a ledger, and has no chain.
const (
	deniedFile = "egress-denied.jsonl"
	oldDenied  = deniedFile + ".1"
	maxDenied  = 2 << 20
)

// keepDenied writes a line to that file. The ledger has it, so that an error is none of the record.
func (w *Writer) keepDenied(line []byte) {
	name := filepath.Join(w.dir, deniedFile)
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return
	}
	if _, err := f.Write(line); err != nil {
		f.Truncate(info.Size()) //nolint:errcheck // if it fails, the next line is lost, too
		return
	}
	if info.Size()+int64(len(line)) > maxDenied {
		os.Rename(name, filepath.Join(w.dir, oldDenied)) //nolint:errcheck // the next line tries again
	}
}

// Denied calls each, in order, for the refusals by a rule that denies whose numbers are greater than after and at most upTo, also for those that were
// rotated away.
func Denied(dir string, after, upTo uint64, each func(control.Record)) error {
	last := after
	for _, name := range []string{oldDenied, deniedFile} {
		f, err := os.Open(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = eachLine(f, func(line []byte, _ int64) bool {
				if r, err := decode(line); err == nil && r.Seq > last && r.Seq <= upTo {
					last = r.Seq
					each(r)
				}
				return true
			})
			f.Close()
		}
		if err != nil {
			return fmt.Errorf("read ledger: %w", err)
		}
	}
	return nil
}

// Rotated calls each, in order, for the refusals by a rule that denies that were rotated away from a ledger. oldest is the number of the ledger's first
// record, 0 without one.
func Rotated(dir string, each func(control.Record)) (oldest uint64, err error) {
	if _, err = Read(dir, func(r control.Record) bool { oldest = r.Seq; return false }); err == nil && oldest > 0 {
		err = Denied(dir, 0, oldest-1, each)
	}
	return oldest, err
}
