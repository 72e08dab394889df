package gitops

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
)

// listSizes and askSizes are what git answers "<type> <size> <name>" lines to: an object's head says how long it is, and
// nothing is inflated to know it, nor made of deltas.
func listSizes(tip OID, known []OID) []string {
	return append([]string{"rev-list", "--objects", "--no-object-names", "--ignore-missing", string(tip), "--not"}, texts(known)...)
}

var askSizes = []string{"cat-file", "--batch-check=%(objecttype) %(objectsize) %(objectname)"}

// CheckSizes refuses objects of the range that are larger than the limits, before anything reads them.
func (q *Quarantine) CheckSizes(ctx context.Context, tip OID, known []OID, limits Limits) error {
	return checkSizes(limits, func(out io.Writer) error {
		return q.Look(ctx, Call{Args: listSizes(tip, known), Stdout: out, For: limits.Time})
	}, func(in io.Reader, out io.Writer) error {
		return q.Look(ctx, Call{Args: askSizes, Stdin: in, Stdout: out, Limit: math.MaxInt64, For: limits.Time})
	})
}

// CheckSizes refuses objects that are larger than the limits by what git in the workspace says of them. It is a help, and no
// check: what the agent's objects say there is looked at again outside.
func (w Workspace) CheckSizes(ctx context.Context, tip OID, known []OID, limits Limits) error {
	return checkSizes(limits, func(out io.Writer) error {
		return w.git(ctx, nil, out, listSizes(tip, known)...)
	}, func(in io.Reader, out io.Writer) error {
		return w.git(ctx, in, out, askSizes...)
	})
}

// checkSizes passes the names that list prints to ask, and looks at the sizes that it prints.
func checkSizes(limits Limits, list func(io.Writer) error, ask func(io.Reader, io.Writer) error) error {
	r, w := io.Pipe()
	defer r.Close()
	go func() { w.CloseWithError(list(w)) }()
	// A refusal ends the listing, too.
	check := &sizeChecker{limits: limits, stop: func() { r.CloseWithError(ErrOutput) }}
	err := ask(r, check)
	if check.refused != nil {
		return check.refused
	}
	return err
}

// sizeChecker reads "type size name" lines and fails on the first that is too large, by itself or with those before.
type sizeChecker struct {
	limits  Limits
	files   int64 // bytes of all
	rest    []byte
	refused error
	stop    func()
}

func (s *sizeChecker) Write(p []byte) (int, error) {
	s.rest = append(s.rest, p...)
	for {
		line, rest, found := bytes.Cut(s.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		s.rest = rest
		var kind, name string
		var size int64
		if _, err := fmt.Sscanf(string(line), "%s %d %s", &kind, &size, &name); err != nil {
			continue // "<name> missing" is Connected's to say
		}
		if s.refused = s.refuse(kind, OID(name), size); s.refused != nil {
			s.stop()
			return 0, s.refused
		}
	}
}

func (s *sizeChecker) refuse(kind string, id OID, size int64) error {
	switch kind {
	case "commit", "tag":
		return s.limits.check(kind, id, size, "commit", s.limits.Commit)
	case "tree":
		return nil // of its files there can be no more than are allowed
	}
	s.files += size
	if err := s.limits.check(kind, id, size, "blob", s.limits.Blob); err != nil || s.files <= s.limits.Pack {
		return err
	}
	return s.limits.tooMuch()
}

// check refuses an object that is larger than a limit.
func (Limits) check(kind string, id OID, size int64, key string, limit int64) error {
	if size <= limit {
		return nil
	}
	return beyond("%s %s has %d bytes, more than airlock.limit.%s allows (%d)", kind, id, size, key, limit)
}

// tooMuch says that new files are too large together.
func (l Limits) tooMuch() error {
	return beyond("the new files take more, when they are unpacked, than airlock.limit.pack allows (%d bytes)", l.Pack)
}
