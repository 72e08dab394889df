package authority

import (
	"crypto/tls"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
)

// maxNames bounds the authorities of a network: programs inside read all of their certificates.
const maxNames = 256

// Set has the authorities of a network. The zero value has none.
type Set struct {
	mu     sync.Mutex
	byName map[string]*Authority
}

// Load replaces the authorities of a set by those from [Set.Save].
func (s *Set) Load(all []control.Authority) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byName = map[string]*Authority{}
	for _, one := range all {
		a, err := parse(one.Certificate, one.Key)
		if err != nil {
			return err
		}
		s.byName[a.name] = a
	}
	return nil
}

// Save returns the authorities for a successor, sorted by name.
func (s *Set) Save() (all []control.Authority, err error) {
	for _, a := range s.sorted() {
		certificate, key, err := a.Save()
		if err != nil {
			return nil, err
		}
		all = append(all, control.Authority{Certificate: certificate, Key: key})
	}
	return all, nil
}

// PEM returns the certificates that programs inside must trust, sorted by name; empty without authorities.
func (s *Set) PEM() string {
	var b strings.Builder
	for _, a := range s.sorted() {
		b.WriteString(a.PEM())
	}
	return b.String()
}

func (s *Set) sorted() (all []*Authority) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.byName)) {
		all = append(all, s.byName[name])
	}
	return all
}

// Update makes authorities for names that have none, and removes those for other names. After an error
// the set has not changed.
func (s *Set) Update(names []string, now time.Time) error {
	if len(names) > maxNames {
		return fmt.Errorf("rules of requests for %d names: at most %d", len(names), maxNames)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next := map[string]*Authority{}
	for _, name := range names {
		if next[name] = s.byName[name]; next[name] != nil {
			continue
		}
		var err error
		if next[name], err = create(name, now); err != nil {
			return err
		}
	}
	s.byName = next
	return nil
}

// Leaf returns a certificate for the server of a canonical name, signed by the authority for the longest part of the name.
func (s *Set) Leaf(name string, now time.Time) (*tls.Certificate, error) {
	for part := name; ; {
		s.mu.Lock()
		a := s.byName[part]
		s.mu.Unlock()
		if a != nil {
			return a.Leaf(name, now)
		}
		var below bool
		if _, part, below = strings.Cut(part, "."); !below {
			return nil, fmt.Errorf("no authority for %s", name)
		}
	}
}
