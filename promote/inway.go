package promote

import (
	"os"
	"path/filepath"
	"time"
)

// inWay is what was in the way of a landing the last time it was tried.
type inWay struct {
	paths []string
	gone  time.Time // when it was seen to be so no more
}

const (
	// stirTime is how long a folder stays as it is before what was taken out of it is taken for gone, and stirMost how long that is
	// waited for: a build may write there all the time.
	stirTime = 150 * time.Millisecond
	stirMost = 450 * time.Millisecond
)

// stirs tells whether somebody is just taking it away: git stash removes the files that are not tracked, and takes the index only then to
// put the rest back. A landing in between would have it fail half-way.
func (w *inWay) stirs(top string, now time.Time) bool {
	if len(w.paths) == 0 {
		return false
	}
	if w.gone.IsZero() {
		w.gone = now
	}
	if now.Sub(w.gone) < stirMost {
		for _, p := range w.paths {
			info, err := os.Stat(filepath.Dir(filepath.Join(top, p)))
			if err != nil {
				continue // it went as well, which its own folder tells where it matters
			}
			if age := now.Sub(info.ModTime()); age >= 0 && age < stirTime {
				return true
			}
		}
	}
	*w = inWay{}
	return false
}
