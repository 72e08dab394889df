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

// links are the envelopes of one statement, as the next one can name them. There are several if the key signed the statement twice.
type links []Envelope

// include reports whether the digest is the one of an envelope, in any form of its signature.
func (l links) include(digest string) bool {
	return slices.ContainsFunc(l, func(e Envelope) bool { return digest == e.Digest || digest == e.other })
}

// Chain checks that no statement is missing in the session of an envelope, up to the newest that the store has. Statements with another key and
// lines with a wrong signature are not part of the chain, because everybody who can push notes can write such lines.
func (s *Store) Chain(of Envelope) (Chain, error) {
	chain, key := []links{}, of.Fingerprint()
	byStatement := map[string]int{} // indexes of chain
	for _, e := range s.sessions[of.Statement.Predicate.Session] {
		if e.Fingerprint() != key || e.Verify() != nil {
			continue
		}
		if at, known := byStatement[string(e.signed)]; known {
			chain[at] = append(chain[at], e)
			continue
		}
		byStatement[string(e.signed)], chain = len(chain), append(chain, links{e})
	}
	slices.SortFunc(chain, func(a, b links) int { return cmp.Compare(a[0].Statement.Predicate.N, b[0].Statement.Predicate.N) })
	c := Chain{}
	for i, l := range chain {
		p := l[0].Statement.Predicate
		switch {
		case p.N <= i:
			return c, fmt.Errorf("the session has two statements with number %d", p.N)
		case p.N > i+1:
			return c, missing("statement %d of the session is missing", i+1)
		case i > 0 && !chain[i-1].include(p.Previous):
			return c, fmt.Errorf("statement %d does not follow the statement before it", p.N)
		case p.Closed != nil && (i != len(chain)-1 || p.Closed.Count != i || i > 0 && !chain[i-1].include(p.Closed.Head)):
			return c, errors.New("the closing statement does not close the session")
		}
		if c.Closed = p.Closed != nil; !c.Closed {
			c.Length++
		}
	}
	return c, nil
}
