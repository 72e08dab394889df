package far

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Do calls do with a name for the same file that the system accepts. The name is valid during the call. For a long path, Do opens the folder in
// steps, and names the file below the entry that /proc has for the open folder.
func Do(name string, do func(near string) error) error {
	if len(name) <= nearLimit {
		return do(name)
	}
	at, folder, whole := unix.AT_FDCWD, "", name
	defer func() {
		if at != unix.AT_FDCWD {
			_ = unix.Close(at)
		}
	}()
	for len(name) > nearLimit {
		first, rest := split(name)
		if first == "" {
			break
		}
		next, err := unix.Openat(at, first, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return &os.PathError{Op: "open", Path: name, Err: err}
		}
		if at != unix.AT_FDCWD {
			_ = unix.Close(at)
		}
		at, folder, name = next, fmt.Sprintf("/proc/self/fd/%d/", next), rest
	}
	err := do(folder + name)
	if failed, ok := errors.AsType[*os.PathError](err); ok {
		failed.Path = whole // the other name means nothing after the call
	}
	return err
}
