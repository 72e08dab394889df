package selftest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/calls"
)

// refusals are the errors of a refused system call. Other errors mean that the kernel has begun to process the request.
var refusals = map[syscall.Errno]bool{
	syscall.EPERM: true, syscall.EACCES: true, syscall.ENOSYS: true, syscall.EAFNOSUPPORT: true, syscall.EPROTONOSUPPORT: true,
}

// tryCalls makes the system calls that must be refused.
func tryCalls(ctx context.Context, s Subject) (seen, broken string, err error) {
	results, err := calls.Make(ctx, s.Prison, forbidden)
	if err != nil {
		return "", "", untried(ctx, err)
	}
	var through []string
	for i, r := range results {
		switch errno := syscall.Errno(-r); {
		case r >= 0:
			through = append(through, forbidden[i].Name)
		case !refusals[errno]:
			through = append(through, fmt.Sprintf("%s (%v)", forbidden[i].Name, errno))
		}
	}
	if len(through) > 0 {
		return "", "not refused: " + strings.Join(through, ", "), nil
	}
	return "all are refused", "", nil
}

// untried turns an error of package calls into an untriedError, unless the prison or ctx has ended.
func untried(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, prison.ErrNotRunning) {
		return err
	}
	return &untriedError{reason: err.Error()}
}
