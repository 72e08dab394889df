package walls

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// OpenProgram opens this program so that another user can execute it, even after the host's files are unmounted. If not everybody may
// execute the file, it opens a copy in memory.
func OpenProgram() (int, error) {
	exe, err := unix.Open("/proc/self/exe", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open program: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(exe, &st); err != nil {
		return -1, fmt.Errorf("open program: %w", err)
	}
	if st.Mode&0o005 == 0o005 {
		return exe, nil
	}
	defer unix.Close(exe)
	copied, err := unix.MemfdCreate("", unix.MFD_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("copy program: %w", err)
	}
	for left := st.Size; left > 0; {
		n, err := unix.Sendfile(copied, exe, nil, int(left))
		if err != nil || n == 0 {
			return -1, fmt.Errorf("copy program: %w", errors.Join(err, errors.New("short copy")))
		}
		left -= int64(n)
	}
	return copied, unix.Fchmod(copied, 0o555)
}
