package inner

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
)

// Usage is the space that a workspace uses on its file system.
type Usage struct {
	Bytes  int64
	Inodes int64
	// Beside is the number of those bytes that are in the agent's home, and not in the workspace.
	Beside int64
	// Whole reports whether everything could be read: the owner of a folder can also deny access to themselves.
	Whole bool
	// Took is the duration of the measurement.
	Took time.Duration
}

// With returns the usage together with that of a home.
func (u Usage) With(home Usage) Usage {
	return Usage{Bytes: u.Bytes + home.Bytes, Inodes: u.Inodes + home.Inodes, Beside: u.Beside + home.Bytes, Whole: u.Whole && home.Whole, Took: u.Took + home.Took}
}

// usageTime limits the time for measuring a workspace.
const usageTime = 2 * time.Minute

// usageScript prints the size in kilobytes, "part" if something may be hidden, and the number of files. Files that
// vanish meanwhile do not count as hidden, and neither do folders of the image that the phantom may not read and
// does not own.
const usageScript = `cd "$1" || exit
LC_ALL=C; export LC_ALL
me=$(id -u)
{ unread=$(du -skx . 2>&1 >&3 | grep -c -v ': No such file or directory$'); } 3>&1
[ "$unread" -eq 0 ] ||
	{ [ -z "$(find . -xdev -type d -user "$me" ! -perm -500)" ] && [ "$(find . -xdev -type d ! -user "$me" ! -perm -005)" ]; } || echo part
find . -xdev | wc -l`

// Usage measures the workspace with du and find, which every system has. A name with a line break counts as one
// more file.
func (w Workspace) Usage(ctx context.Context) (Usage, error) {
	ctx, cancel := context.WithTimeout(ctx, usageTime)
	defer cancel()
	begun := time.Now()
	var out bytes.Buffer
	var stderr gitops.Stderr
	code, err := w.Run(ctx, Process{Argv: []string{"sh", "-c", usageScript, "sh", w.Dir}, Env: w.innerEnv(),
		Stdout: gitops.CapOutput(&out, lookLimit), Stderr: &stderr})
	if err != nil {
		return Usage{}, fmt.Errorf("measure the workspace: %w", err)
	}
	fields := bytes.Fields(out.Bytes())
	u := Usage{Whole: len(fields) == 3}
	if len(fields) >= 3 {
		_, err = fmt.Sscan(string(fields[0])+" "+string(fields[len(fields)-1]), &u.Bytes, &u.Inodes)
	}
	if len(fields) < 3 || err != nil {
		return u, fmt.Errorf("measure the workspace: status %d, %s %s", code, gitops.Text(out.String()), stderr.String())
	}
	u.Bytes, u.Took = u.Bytes<<10, time.Since(begun)
	return u, nil
}
