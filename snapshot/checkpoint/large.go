package checkpoint

import (
	"errors"
	"fmt"
	"math"

	"github.com/git-airlock/git-airlock/snapshot/checkpoint/files"
	"github.com/git-airlock/git-airlock/words"
)

// ErrTooLarge reports that a checkpoint needs more room than its store may use. The error in a chain is a [TooLarge].
var ErrTooLarge = errors.New("the files of the workspace are larger than airlock.checkpoint.max")

// TooLarge is an [ErrTooLarge] with sizes.
type TooLarge struct {
	Bytes   int64  // about the room that the checkpoint needs
	Path    string // the largest file, in bytes that the agent has chosen; empty if it is not known
	Largest int64  // the size of that file, in bytes
}

func (t *TooLarge) Error() string {
	if t.Path == "" {
		return ErrTooLarge.Error()
	}
	return fmt.Sprintf("%v: %d bytes, and %d of them in %q", ErrTooLarge, t.Bytes, t.Largest, words.Clip(t.Path, shownPath))
}

func (*TooLarge) Unwrap() error { return ErrTooLarge }

// tooLarge returns the error for the files of a workspace.
func tooLarge(top *node) *TooLarge {
	t := &TooLarge{}
	for path, n := range top.all() {
		if n.kind != files.Regular {
			continue
		}
		t.Bytes = sum(t.Bytes, n.Size)
		if n.Size > t.Largest {
			t.Path, t.Largest = path, n.Size
		}
	}
	return t
}

// sum adds two sizes. The result is the largest size if it would overflow: the sizes of sparse files are as the agent likes.
func sum(a, b int64) int64 { return a + min(b, math.MaxInt64-a) }
