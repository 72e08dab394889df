package ledger

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/git-airlock/git-airlock/gitops/ticks"
	"github.com/git-airlock/git-airlock/prison/egress/control"
)

// followPause is the time between two reads of a followed ledger.
const followPause = 200 * time.Millisecond

// Follow calls each for every record after the one with the number last, until ctx ends or each fails.
func Follow(ctx context.Context, dir string, last uint64, each func(control.Record) error) error {
	f := follower{dir: dir, last: last}
	defer func() { f.file.Close() }()
	for range ticks.NowAndEach(ctx.Done(), followPause) {
		if err := f.poll(each); err != nil {
			return err
		}
	}
	return nil
}

// follower reads the lines that are appended to the newest file of a ledger.
type follower struct {
	dir  string
	last uint64
	file *os.File // nil before there is one
	at   int64    // how many bytes of the file were read
}

// poll reads new records, first from the file that may have been rotated.
func (f *follower) poll(each func(control.Record) error) error {
	if err := f.read(each); err != nil {
		return err
	}
	newest, err := os.Open(filepath.Join(f.dir, control.LedgerFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if f.file != nil && sameFile(f.file, newest) {
		return newest.Close()
	}
	if err := f.read(each); err != nil { // records that were written between the read and the rotation
		newest.Close()
		return err
	}
	f.file.Close()
	f.file, f.at = newest, 0
	return f.read(each)
}

func (f *follower) read(each func(control.Record) error) (err error) {
	if f.file == nil {
		return nil
	}
	lineErr := eachLine(io.NewSectionReader(f.file, f.at, 1<<62), func(line []byte, size int64) bool {
		f.at += size
		if r, broken := decode(line); broken == nil && r.Seq > f.last {
			f.last = r.Seq
			err = each(r)
		}
		return err == nil
	})
	return errors.Join(err, lineErr)
}

func sameFile(a, b *os.File) bool {
	x, err := a.Stat()
	y, err2 := b.Stat()
	return err == nil && err2 == nil && os.SameFile(x, y)
}
