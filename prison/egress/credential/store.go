package credential

import (
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
)

// Store has the values of credentials in memory, and counts their uses. The zero value has none.
type Store struct {
	mu     sync.Mutex
	values map[string]known
	uses   map[string]Use
}

// known is a value with its forms in answers.
type known struct {
	value  string
	echoes Echoes
}

// Use counts the requests that got a value.
type Use struct {
	Last  time.Time
	Day   time.Time // the day (UTC) of the requests that Today counts
	Today int
	Total uint64
	// Bad is the status of the last answer if the server refused the value with it, or failed, see [control.IsBad], and 0 otherwise.
	Bad int
	// Waiting is how many requests have no answer yet, and Since when the first of them was sent, or when the server last answered another one.
	Waiting int
	Since   time.Time
	// Silent is how long the last request waited that ended without an answer, if that was long. It is 0 if the server has answered a later one.
	Silent time.Duration
}

// Set adds values by the names of their credentials, and replaces earlier ones.
func (s *Store) Set(values map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values, s.uses = map[string]known{}, map[string]Use{}
	}
	for name, value := range values {
		if CheckValue(value) != nil {
			continue
		}
		if s.values[name].value != value {
			u := s.uses[name]
			u.Bad = 0
			s.uses[name] = u
		}
		s.values[name] = known{value, echoesOf(value)}
	}
}

// Continue sets the uses that an earlier store has counted. Later uses add to them.
func (s *Store) Continue(name string, total uint64, today int, last time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uses == nil {
		s.values, s.uses = map[string]known{}, map[string]Use{}
	}
	s.uses[name] = Use{Last: last, Day: dayOf(last), Today: today, Total: total}
}

// dayOf returns the day of a time in UTC.
func dayOf(at time.Time) time.Time { return at.UTC().Truncate(24 * time.Hour) }

// Get returns a value with its forms in answers. ok is false if there is none.
func (s *Store) Get(name string) (value string, echoes Echoes, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.values[name]
	return k.value, k.echoes, ok
}

// Count counts a request with a known value. It returns false if the limit of that day is reached. 0 means no limit. If the clock goes back
// to the day before, the later day goes on, so that a clock that is set around midnight does not give the limit again. If the clock goes
// back further, it was wrong before, and the day of now begins.
func (s *Store) Count(name string, limit int, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.uses[name]
	if day := dayOf(now); day.After(u.Day) || u.Day.Sub(day) > 24*time.Hour {
		u.Last, u.Day, u.Today = now, day, 0
	}
	if limit > 0 && u.Today >= limit {
		return false
	}
	if u.Today, u.Total = u.Today+1, u.Total+1; now.After(u.Last) {
		u.Last = now // never of a day before Day, which Continue takes from it
	}
	if u.Waiting++; u.Waiting == 1 {
		u.Since = now
	}
	s.uses[name] = u
	return true
}

// Done stores that a request that counted has an answer, or has ended without one.
func (s *Store) Done(name string, answered bool, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.uses[name]
	u.Waiting--
	if answered {
		u.Since = now
	} else if silent := now.Sub(u.Since); silent >= control.SilentAfter {
		u.Silent = silent
	}
	s.uses[name] = u
}

// Answered stores the status of an answer to a request with a value. It reports whether [Use.Bad] or [Use.Silent] has changed.
func (s *Store) Answered(name string, status int) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !control.IsBad(status) {
		status = 0
	}
	u := s.uses[name]
	changed = u.Bad != status || u.Silent > 0
	u.Bad, u.Silent = status, 0
	s.uses[name] = u
	return changed
}

// Used returns the uses of a credential.
func (s *Store) Used(name string) Use {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.uses[name]
}
