//go:build !linux

package selftest

import (
	"context"

	"github.com/git-airlock/git-airlock/prison/calls"
)

// forbidden is empty here, because its calls exist only on Linux.
var forbidden []calls.Call

// evaluatePrivate compares nothing, since the prison runs on another system.
func evaluatePrivate(_ Subject, out string) (seen, broken string) { return "another system's", "" }

// leastOfGroups finds no control groups on this system.
func leastOfGroups(int, groupLimit) (least float64, known bool) { return 0, false }

// tryConnect fails, since it needs Linux's system calls.
func tryConnect(context.Context, Subject, string, int) (seen, broken string, err error) {
	return "", "", &untriedError{reason: "the calls for it are Linux's"}
}

// tryDatagram fails, since it needs Linux's system calls.
func tryDatagram(context.Context, Subject, string, int) (seen, broken string, err error) {
	return "", "", &untriedError{reason: "the calls for it are Linux's"}
}

// trySystemFiles fails, since it needs Linux's system calls, and a system whose files the prison can share.
func trySystemFiles(context.Context, Subject) (seen, broken string, err error) {
	return "another system's", "", nil
}
