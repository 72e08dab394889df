package gitops

import (
	"bytes"
	"context"
	"fmt"
	"time"
)

// Usage is what a workspace takes of its file system.
type Usage struct {
	Bytes  int64
	Inodes int64
	// Beside is how many of the bytes are not in the workspace but in the agent's home.
	Beside int64
	// Whole tells that all of it could be read: who owns a folder can close it to themselves, too.
	Whole bool
	// Took is how long it took to measure.
	Took time.Duration
}

// With adds what a home takes.
func (u Usage) With(home Usage) Usage {
	return Usage{Bytes: u.Bytes + home.Bytes, Inodes: u.Inodes + home.Inodes, Beside: u.Beside + home.Bytes, Whole: u.Whole && home.Whole, Took: u.Took + home.Took}
}

// usageTime bounds how long a workspace is measured.
const usageTime = 2 * time.Minute

// usageScript prints what there is in kilobytes, "part" if some of it could be hidden, and the number of files. What vanishes meanwhile hides
// nothing, nor does what an image has closed to the phantom, which is not theirs.
const usageScript = `cd "$1" || exit
LC_ALL=C; export LC_ALL
me=$(id -u)
{ unread=$(du -skx . 2>&1 >&3 | grep -c -v ': No such file or directory$'); } 3>&1
[ "$unread" -eq 0 ] ||
	{ [ -z "$(find . -xdev -type d -user "$me" ! -perm -500)" ] && [ "$(find . -xdev -type d ! -user "$me" ! -perm -005)" ]; } || echo part
find . -xdev | wc -l`

// Usage measures the workspace by what any system has, du and find. A line break in a name counts as one file more.
func (w Workspace) Usage(ctx context.Context) (Usage, error) {
	ctx, cancel := context.WithTimeout(ctx, usageTime)
	defer cancel()
	begun := time.Now()
	var out bytes.Buffer
	var stderr Stderr
	code, err := w.Run(ctx, Process{Argv: []string{"sh", "-c", usageScript, "sh", w.Dir}, Env: w.innerEnv(),
		Stdout: &cappedWriter{w: &out, left: lookLimit}, Stderr: &stderr})
	if err != nil {
		return Usage{}, fmt.Errorf("measure the workspace: %w", err)
	}
	fields := bytes.Fields(out.Bytes())
	u := Usage{Whole: len(fields) == 3}
	if len(fields) >= 3 {
		_, err = fmt.Sscan(string(fields[0])+" "+string(fields[len(fields)-1]), &u.Bytes, &u.Inodes)
	}
	if len(fields) < 3 || err != nil {
		return u, fmt.Errorf("measure the workspace: status %d, %s %s", code, Escape(out.String()), stderr.String())
	}
	u.Bytes, u.Took = u.Bytes<<10, time.Since(begun)
	return u, nil
}
