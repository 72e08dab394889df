package events

import (
	"slices"
	"sync"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/record"
)

// maxUnwritten is the maximum number of events that wait for room in one log. Later ones are lost.
const maxUnwritten = 100

// unwritten has the events that this process could not write because the disk was full, by log. The event of the full disk is among them.
var unwritten = struct {
	sync.Mutex
	of map[string][]record.Event
}{of: map[string][]record.Event{}}

// Retry writes the events for which the log in dir had no room before.
func Retry(dir string) { write(dir) }

// write appends events to the log in dir, after those for which there was no room before.
func write(dir string, more ...record.Event) {
	unwritten.Lock()
	defer unwritten.Unlock()
	all := unwritten.of[dir]
	for _, e := range more {
		again := func(u record.Event) bool { return u.Kind == e.Kind && u.Text == e.Text }
		if len(all) < maxUnwritten && !slices.ContainsFunc(all, again) {
			all = append(all, e)
		}
	}
	if len(all) == 0 {
		return
	}
	if gitops.NoRoom(put(dir, all)) {
		unwritten.of[dir] = all
	} else {
		delete(unwritten.of, dir)
	}
}

// put appends events to the log in dir, all of them or none.
func put(dir string, all []record.Event) error {
	content, err := record.EncodeLines(all)
	if err != nil {
		return nil //nolint:nilerr // a later attempt would fail as well
	}
	f, err := open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if torn(f) {
		content = append([]byte("\n"), content...)
	}
	if _, err = f.Write(content); err != nil {
		_ = f.Truncate(info.Size())
	}
	return err
}
