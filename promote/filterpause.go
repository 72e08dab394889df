package promote

import (
	"errors"
	"maps"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
)

// filterPause keeps a landing from being tried again and again after a filter of the user's has failed: git-lfs writes a log file
// each time, and what it fetches, or fails to, an agent has named.
type filterPause struct {
	err    error // of the last landing; nil if no filter has failed
	until  time.Time
	wait   time.Duration
	config gitops.Config // as it was then: who changes it may have mended the filter
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
	if failed := (*gitops.FilterError)(nil); !errors.As(err, &failed) {
		return filterPause{}
	}
	wait := min(max(4*p.wait, filterWait), filterWaitMax)
	return filterPause{err, now.Add(wait), wait, config}
}
