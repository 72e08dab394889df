package selftest

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/watch/execs"
)

// recordPatience is how long a program may take to appear in the record.
const recordPatience = 5 * time.Second

// tryRecord executes a program with a random argument, and searches the record on the host for it.
func tryRecord(ctx context.Context, s Subject) (seen, broken string, err error) {
	argument := rand.Text()
	if _, err := s.read(ctx, "true; sh -c : "+argument); err != nil {
		return "", "", err
	}
	for deadline := time.Now().Add(recordPatience); ; time.Sleep(pause / 10) {
		all, err := execs.Read(s.Spec.Dir)
		if err == nil && slices.ContainsFunc(all, func(r execs.Record) bool { return r.Ran() && slices.Contains(r.Argv, argument) }) {
			return "it is in the record", "", nil
		}
		switch {
		case ctx.Err() != nil:
			return "", "", ctx.Err()
		case time.Now().After(deadline):
			return "", "it is not in the record", nil
		}
	}
}

// unrecorded reports whether the prison's spec requests no record.
func unrecorded(s Subject) bool { return !s.Spec.Record && !s.Isolation.Lacks(prison.NoPrograms) }
