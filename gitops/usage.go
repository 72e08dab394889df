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
}

// With adds what a home takes.
func (u Usage) With(home Usage) Usage {
	return Usage{Bytes: u.Bytes + home.Bytes, Inodes: u.Inodes + home.Inodes, Beside: u.Beside + home.Bytes, Whole: u.Whole && home.Whole}
}

// usageTime bounds how long a workspace is measured.
const usageTime = 2 * time.Minute

// Usage measures the workspace by what any system has, du and find. A line break in a name counts as one file more.
func (w Workspace) Usage(ctx context.Context) (Usage, error) {
	ctx, cancel := context.WithTimeout(ctx, usageTime)
	defer cancel()
	const script = `cd "$1" && { du -skx . || echo part; } && find . -xdev | wc -l`
	var out bytes.Buffer
	var stderr headTail
	code, err := w.Run(ctx, Process{Argv: []string{"sh", "-c", script, "sh", w.Dir}, Env: w.innerEnv(),
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
	u.Bytes <<= 10
	return u, nil
}
