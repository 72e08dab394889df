package daemon

import "os"

// logLimit is the size in bytes at which a daemon's log is emptied.
const logLimit = 1 << 20

// BoundedLog is a log that is emptied when it is full. It must be bounded, because an agent can cause log messages.
type BoundedLog struct{ *os.File }

// Write implements [io.Writer].
func (l BoundedLog) Write(p []byte) (int, error) {
	if info, err := l.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > logLimit {
		_ = l.Truncate(0) // the file is open for appending
	}
	return l.File.Write(p)
}

// OpenLog opens a log for appending.
func OpenLog(name string) (*os.File, error) {
	flags := os.O_CREATE | os.O_APPEND | os.O_WRONLY
	if info, err := os.Lstat(name); err == nil && info.Size() > logLimit {
		flags |= os.O_TRUNC
	}
	return os.OpenFile(name, flags, 0o600)
}
