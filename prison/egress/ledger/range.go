package ledger

import (
	"fmt"
	"io"
	"os"

	"github.com/git-airlock/git-airlock/prison/egress/control"
)

// Newest returns the number of the newest record, 0 without a ledger. It reads the end of the ledger only.
func Newest(dir string) (uint64, error) {
	end, err := readEnd(dir)
	if err != nil {
		return 0, fmt.Errorf("read ledger: %w", err)
	}
	return end.seq, nil
}

// Range calls each, in order, for the records whose numbers are greater than after and at most upTo. It finds the first of them in each
// file by a binary search, and so reads little more than these records. It does not check the chain. It leaves out records that were
// rotated away.
func Range(dir string, after, upTo uint64, each func(control.Record)) error {
	if upTo <= after {
		return nil
	}
	files, err := openAll(dir)
	defer closeAll(files)
	for _, f := range files {
		if err == nil {
			err = rangeOf(f, after, upTo, each)
		}
	}
	if err != nil {
		return fmt.Errorf("read ledger: %w", err)
	}
	return nil
}

// rangeOf is Range for one file.
func rangeOf(f *os.File, after, upTo uint64, each func(control.Record)) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	from, to := int64(0), info.Size() // the first wanted record begins in this part, if the file has it
	for to-from > maxLine {
		middle := from + (to-from)/2
		seq, known, err := firstAfter(f, middle, info.Size())
		if err != nil {
			return err
		}
		if known && seq <= after {
			from = middle
		} else {
			to = middle
		}
	}
	whole := from == 0
	return eachLine(io.NewSectionReader(f, from, info.Size()-from), func(line []byte, _ int64) bool {
		if !whole { // the first line may lack its beginning
			whole = true
			return true
		}
		r, err := decode(line)
		if err == nil && r.Seq > after && r.Seq <= upTo {
			each(r)
		}
		return err != nil || r.Seq < upTo
	})
}

// firstAfter returns the number of the first whole record that begins after a place. known is false if there is none.
func firstAfter(f *os.File, place, size int64) (seq uint64, known bool, err error) {
	whole := false
	err = eachLine(io.NewSectionReader(f, place, min(size-place, 4*maxLine)), func(line []byte, _ int64) bool {
		if !whole {
			whole = true
			return true
		}
		if r, err := decode(line); err == nil {
			seq, known = r.Seq, true
		}
		return !known
	})
	return seq, known, err
}
