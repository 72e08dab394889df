// Package pause decides how long landings wait after one has failed: for paths in the way, for a git command of the user, and for a
// filter. It also finds a landing that takes long.
package pause

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/land"
)

// Blocker describes the paths that were in the way of the last landing. The zero value stands for none.
type Blocker struct {
	Paths []string
	gone  time.Time // time at which they were first gone
}

const (
	// quietTime is the time that a folder must stay unchanged before a path removed from it counts as gone. A build
	// may write to the folder all the time, so that the wait ends after quietMost.
	quietTime = 150 * time.Millisecond
	quietMost = 450 * time.Millisecond
)

// RecentlyChanged reports whether another process may still be removing the paths. git stash removes the untracked
// files first, and then takes the index lock to restore the rest. A landing between these two steps would make git
// stash fail half-way. On Linux the landing itself finds a git stash (see [land.CommandError]), but not a program that
// does the same without git.
func (b *Blocker) RecentlyChanged(top string, now time.Time) bool {
	missing := func(path string) bool {
		_, err := os.Lstat(filepath.Join(top, path))
		return err != nil
	}
	if !slices.ContainsFunc(b.Paths, missing) {
		return false // nobody has removed anything
	}
	if b.gone.IsZero() {
		b.gone = now
	}
	if now.Sub(b.gone) < quietMost {
		for _, p := range b.Paths {
			info, err := os.Stat(filepath.Dir(filepath.Join(top, p)))
			if err != nil {
				continue // the folder is gone as well; if it matters, the folder above it has changed
			}
			if age := now.Sub(info.ModTime()); age >= 0 && age < quietTime {
				return true
			}
		}
	}
	*b = Blocker{}
	return false
}

// Command is a git command of the user that landings wait for. The zero value stands for none.
type Command struct {
	*land.CommandError
	since time.Time // time of the first landing that waited
}

// briefCommand is the time that landings wait for a command before a hold names it. Nearly all commands are shorter.
const briefCommand = time.Second

// After returns the command that made a landing end with err.
func (a Command) After(err error, now time.Time) Command {
	next := Command{since: now}
	if !errors.As(err, &next.CommandError) {
		return Command{}
	}
	if a.CommandError != nil && *a.CommandError == *next.CommandError {
		next.since = a.since
	}
	return next
}

// Lasts reports whether landings have waited for the command for so long that the user should know.
func (a Command) Lasts(now time.Time) bool {
	return a.CommandError != nil && (a.Waits || now.Sub(a.since) >= briefCommand)
}

// Outlasts reports whether the command cannot end before this process.
func (a Command) Outlasts() bool { return a.CommandError != nil && a.Waits }

// Filter is the pause before the next try to land, after a filter has failed or git has used up its processor time. git-lfs writes a log file
// for each failure, and an agent chooses the objects that git-lfs tries to fetch.
type Filter struct {
	Err    error // of the last landing; nil if no filter has failed
	until  time.Time
	wait   time.Duration
	config gitops.Config // the configuration at that time: a change may have repaired the filter
}

const (
	filterWait    = 2 * time.Second
	filterWaitMax = time.Hour
)

// Pauses reports whether no landing should be tried now.
func (p Filter) Pauses(now time.Time, config gitops.Config) bool {
	return p.Err != nil && now.Before(p.until) && maps.Equal(config, p.config)
}

// After returns the pause that follows a landing which ended with err.
func (p Filter) After(err error, now time.Time, config gitops.Config) Filter {
	if failed := (*land.FilterError)(nil); !errors.As(err, &failed) && !gitops.Spent(err) {
		return Filter{}
	}
	wait := min(max(4*p.wait, filterWait), filterWaitMax)
	return Filter{err, now.Add(wait), wait, config}
}

// LongLanding is the time after which a landing counts as long. Without filters, nearly all take less than a second.
const LongLanding = 10 * time.Second

// LandingSince returns when the oldest landing began of which files are in the host state dir. It is zero if there is none.
func LandingSince(dir string) (begun time.Time) {
	for _, name := range gitops.Glob(dir, land.ScratchPrefix+"*") {
		if info, err := os.Lstat(name); err == nil && (begun.IsZero() || info.ModTime().Before(begun)) {
			begun = info.ModTime()
		}
	}
	return begun
}
