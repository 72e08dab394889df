package dialect

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/words"
)

// FullDisk is an error because the disk of the engine is full.
type FullDisk struct {
	Err  error
	Disk string // the folder of the engine on that disk
}

func (e *FullDisk) Error() string { return e.Err.Error() }

func (e *FullDisk) Unwrap() error { return e.Err }

// Next returns the commands that show the disk.
func (e *FullDisk) Next() []string {
	disk := words.ShellQuote(e.Disk)
	return []string{"df -h " + disk + "  # the disk of the container engine", "df -i " + disk}
}

// noRoom are the messages of the errors ENOSPC and EDQUOT, in lower case. An engine reports an error as text.
var noRoom = []string{"no space left on device", "disk quota exceeded"}

// Explained returns a [FullDisk] for an error, or the output of a program of the engine, that reports a full disk of the engine. All other
// errors stay as they are. The error of another file than those of the engine is about another disk, and the control groups have a limit of
// their own with this error.
func (p *Platform) Explained(err error, output ...string) error {
	if err == nil || p.DockerRootDir == "" {
		return err
	}
	said := strings.ToLower(strings.Join(append(output, err.Error()), "\n"))
	if !slices.ContainsFunc(noRoom, func(text string) bool { return strings.Contains(said, text) }) || strings.Contains(said, "/sys/fs/cgroup/") {
		return err
	}
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		if below, wrong := filepath.Rel(p.DockerRootDir, file.Path); wrong != nil || !filepath.IsLocal(below) {
			return err
		}
	}
	return &FullDisk{err, p.DockerRootDir}
}
