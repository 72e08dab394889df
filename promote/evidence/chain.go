package evidence

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Chain sums up the statements of one session that one key has signed.
type Chain struct {
	// Length is the number of statements about landed commits.
	Length int
	// Closed reports that a closing statement has the same number, so that none is missing at the end.
	Closed bool
}

// MissingError reports that evidence, an object or a key is missing, in contrast to evidence that is wrong.
type MissingError struct{ Text string }

func (e *MissingError) Error() string { return e.Text }

func missing(format string, values ...any) error {
	return &MissingError{fmt.Sprintf(format, values...)}
}

// Missing reports whether an error is or wraps a [*MissingError].
func Missing(err error) bool {
	_, is := errors.AsType[*MissingError](err)
	return is
}

// Chain checks that no statement is missing in the session of an envelope, up to the newest that the store has. Statements with another key and
// lines with a wrong signature are not part of the chain, because everybody who can push notes can write such lines.
func (s *Store) Chain(of Envelope) (Chain, error) {
	var links []Envelope
	key := of.Fingerprint()
	for _, e := range s.sessions[of.Statement.Predicate.Session] {
		if e.Fingerprint() == key && e.Verify() == nil {
			links = append(links, e)
		}
	}
	slices.SortFunc(links, func(a, b Envelope) int { return cmp.Compare(a.Statement.Predicate.N, b.Statement.Predicate.N) })
	c := Chain{}
	for i, e := range links {
		p := e.Statement.Predicate
		switch {
		case p.N <= i:
			return c, fmt.Errorf("the session has two statements with number %d", p.N)
		case p.N > i+1:
			return c, missing("statement %d of the session is missing", i+1)
		case i > 0 && p.Previous != links[i-1].Digest:
			return c, fmt.Errorf("statement %d does not follow the statement before it", p.N)
		case p.Closed != nil && (i != len(links)-1 || p.Closed.Count != i || i > 0 && p.Closed.Head != links[i-1].Digest):
			return c, errors.New("the closing statement does not close the session")
		}
		if c.Closed = p.Closed != nil; !c.Closed {
			c.Length++
		}
	}
	return c, nil
}
