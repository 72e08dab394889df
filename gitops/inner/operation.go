package inner

import (
	"bytes"
	"context"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// operation is a function for sh that succeeds if the agent's git is in the middle of an operation, and prints the file by which git knows it.
// A rebase also makes the files of the operations that it consists of.
const operation = `operation() {
	for name in rebase-merge rebase-apply MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD sequencer BISECT_LOG; do
		if [ -e "$dir/$name" ]; then printf '%s\0' "$name"; return 0; fi
	done
	return 1
}`

// operations maps those files to names for the user.
var operations = map[string]string{
	"rebase-merge": "rebase", "rebase-apply": "rebase or am", "MERGE_HEAD": "merge", "CHERRY_PICK_HEAD": "cherry-pick", "REVERT_HEAD": "revert",
	"sequencer": "cherry-pick or revert", "BISECT_LOG": "bisect",
}

// headRef prints the content of HEAD, which is the agent's file.
const headRef = `operation || printf '\0'
[ -f "$dir/HEAD" ] && head -c 4096 "$dir/HEAD" || :`

// Operation returns the name of the operation that the agent's git is in the middle of, such as "rebase", or empty, and the full name of the
// ref that HEAD names, or empty if HEAD is detached.
func (w Workspace) Operation(ctx context.Context) (name, head string, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	var out bytes.Buffer
	var stderr gitops.Stderr
	code, err := w.runUnlessIdle(ctx, Process{Argv: []string{"sh", "-c", "dir=$GIT_DIR\n" + operation + "\n" + headRef}, Env: w.innerEnv(),
		Stdout: gitops.CapOutput(&out, obstaclePaths), Stderr: &stderr})
	if err := failure("read the operation of git in the workspace", code, stderr.String(), err); err != nil {
		return "", "", err
	}
	file, text, _ := strings.Cut(out.String(), "\x00")
	if ref, ok := strings.CutPrefix(text, "ref:"); ok {
		head = strings.TrimSpace(ref)
	}
	return operations[file], head, nil
}

// Operation returns the name of the operation of an [Unfinished] obstacle, such as "rebase", or empty.
func (r *Refused) Operation() string {
	if r.Obstacle != Unfinished || len(r.Paths) == 0 {
		return ""
	}
	return operations[r.Paths[0]]
}
