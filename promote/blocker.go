package promote

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/land"
)

// blocker is what was in the way of the last landing.
type blocker struct {
	paths []string
	gone  time.Time // when it was first not in the way any more
}

const (
	// quietTime is how long a folder must stay unchanged before what was taken out of it counts as gone. A build may
	// write there all the time, so that nobody waits longer than quietMost.
	quietTime = 150 * time.Millisecond
	quietMost = 450 * time.Millisecond
)

// recentlyChanged reports whether somebody is just taking the paths away: git stash removes the untracked files, and
// only then takes the index to put the rest back. A landing in between would have it fail half-way.
func (b *blocker) recentlyChanged(top string, now time.Time) bool {
	if len(b.paths) == 0 {
		return false
	}
	if b.gone.IsZero() {
		b.gone = now
	}
	if now.Sub(b.gone) < quietMost {
		for _, p := range b.paths {
			info, err := os.Stat(filepath.Dir(filepath.Join(top, p)))
			if err != nil {
				continue // the folder is gone as well: the folder above it shows that where it matters
			}
			if age := now.Sub(info.ModTime()); age >= 0 && age < quietTime {
				return true
			}
		}
	}
	*b = blocker{}
	return false
}

// filterPause keeps a landing from being tried again and again after one of the user's filters has failed: git-lfs
// writes a log file each time, and an agent has named what it tries to fetch.
type filterPause struct {
	err    error // of the last landing; nil if no filter has failed
	until  time.Time
	wait   time.Duration
	config gitops.Config // as it was then: a change may have mended the filter
}

const (
	filterWait    = 2 * time.Second
	filterWaitMax = time.Hour
)

// pauses reports whether a landing should not be tried now.
func (p filterPause) pauses(now time.Time, config gitops.Config) bool {
	return p.err != nil && now.Before(p.until) && maps.Equal(config, p.config)
}

// after returns the pause after a landing that has ended with err.
func (p filterPause) after(err error, now time.Time, config gitops.Config) filterPause {
	if failed := (*land.FilterError)(nil); !errors.As(err, &failed) {
		return filterPause{}
	}
	wait := min(max(4*p.wait, filterWait), filterWaitMax)
	return filterPause{err, now.Add(wait), wait, config}
}
