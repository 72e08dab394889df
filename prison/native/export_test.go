//go:build linux

package native

import (
	"os"
	"path/filepath"

	"github.com/git-airlock/git-airlock/prison"
)

// LooksAlive reports whether this package takes a process for running.
func LooksAlive(pid int) bool { return identify(pid).alive() }

// ReadAnyway is readAnyway for tests.
var ReadAnyway = readAnyway

// LogKept is logKept for tests.
const LogKept = logKept

// WriteLog writes pieces of a command's output into the log in a folder, as a keeper does, and returns the content of the log.
func WriteLog(dir string, pieces ...[]byte) ([]byte, error) {
	k := &keeper{spec: prison.Spec{Dir: dir}}
	k.newLog()
	defer k.log.Close()
	defer k.times.Close()
	for _, p := range pieces {
		k.writeLog(p)
	}
	return os.ReadFile(filepath.Join(dir, logName))
}
