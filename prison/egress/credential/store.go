package credential

import (
	"net/http"
	"sync"
	"time"
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
	// Refused is the status of the last answer if the server refused the value with it, see [IsRefusal], and 0 otherwise.
	Refused int
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
			u.Refused = 0
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
	s.uses[name] = u
	return true
}

// IsRefusal reports whether a server says with a status that a value is not valid, may not do this, or was used too often.
func IsRefusal(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusTooManyRequests
}

// Answered stores the status of an answer to a request with a value. It reports whether [Use.Refused] has changed.
func (s *Store) Answered(name string, status int) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !IsRefusal(status) {
		status = 0
	}
	u := s.uses[name]
	changed, u.Refused = u.Refused != status, status
	s.uses[name] = u
	return changed
}

// Used returns the uses of a credential.
func (s *Store) Used(name string) Use {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.uses[name]
}
