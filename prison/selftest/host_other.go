//go:build !linux

package selftest

import "context"

// judgePrivate has nothing to compare with: the prison is on another system.
func judgePrivate(_ Subject, out string) (seen, broken string) { return "another system's", "" }

// leastOfGroups knows nothing here.
func leastOfGroups(int, groupLimit) (least float64, known bool) { return 0, false }

// tryConnect needs Linux's calls.
func tryConnect(context.Context, Subject, string, int) (seen, broken string, err error) {
	return "", "", &untriedError{reason: "the calls for it are Linux's"}
}

// trySystemFiles needs them, too, and files that could be the same.
func trySystemFiles(context.Context, Subject) (seen, broken string, err error) {
	return "another system's", "", nil
}
