package gitops

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
)

// statusKeys are the settings that decide which paths have changed, and that name no program: these alone are taken from
// the inner repository for git status, which would run the filters that it configures. A list of what runs something
// would never be complete.
var statusKeys = []string{
	"core.repositoryformatversion", "core.filemode", "core.symlinks", "core.ignorecase", "core.precomposeunicode",
	"core.autocrlf", "core.eol", "core.checkroundtripencoding", "core.trustctime", "core.checkstat", "core.ignorestat",
	"core.excludesfile", "core.attributesfile", "core.sparsecheckout", "core.sparsecheckoutcone", "core.quotepath",
	"core.bigfilethreshold", "core.usereplacerefs", "index.sparse",
}

// statusScript makes a repository of the inner one's parts but for its configuration, attributes and hooks, which is read
// from standard input, and counts there. Arguments: the workspace, then the command.
const statusScript = `set -e
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
w=$1; shift
IFS= read -r head <"$w/.git/HEAD" || [ "$head" ]
printf '%s\n' "$head" >"$d/HEAD"
for f in refs packed-refs objects shallow reftable index; do [ ! -e "$w/.git/$f" ] || ln -s "$w/.git/$f" "$d/$f"; done
for f in "$w"/.git/sharedindex.*; do [ ! -e "$f" ] || ln -s "$f" "$d/${f##*/}"; done
mkdir "$d/info"
for f in exclude sparse-checkout; do [ ! -e "$w/.git/info/$f" ] || ln -s "$w/.git/info/$f" "$d/info/$f"; done
cat >"$d/config"
GIT_DIR=$d "$@"`

// Uncommitted counts the paths that the agent changed and did not commit, and runs nothing that the agent has configured.
// Beyond a megabyte of names it counts no further.
func (w Workspace) Uncommitted(ctx context.Context) (int, error) {
	settings, err := w.look(ctx, "config", "--list", "--includes", "-z")
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	counter := &nulCounter{left: lookLimit}
	var stderr Stderr
	argv := append([]string{"sh", "-c", statusScript, "sh", w.Dir}, w.argv("status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=all")...)
	code, err := w.patiently(ctx, Process{
		Argv: argv, Env: append(w.innerEnv(), "GIT_OPTIONAL_LOCKS=0"),
		Stdin: strings.NewReader(statusConfig(settings)), Stdout: counter, Stderr: &stderr,
	})
	switch {
	case counter.left < 0:
		return counter.n, nil
	case err != nil:
		return counter.n, fmt.Errorf("git status in the workspace: %w", err)
	case code != 0:
		return counter.n, &Error{Args: []string{"status"}, Status: code, Stderr: stderr.String()}
	}
	return counter.n, nil
}

// statusConfig writes a configuration of what git config --list -z has of the keys that count.
func statusConfig(listed string) string {
	var b strings.Builder
	for entry := range strings.SplitSeq(listed, "\x00") {
		key, value, hasValue := strings.Cut(entry, "\n")
		section, name, found := strings.Cut(key, ".")
		if !found || section != "extensions" && !slices.Contains(statusKeys, key) || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			continue
		}
		fmt.Fprintf(&b, "[%s]\n\t%s", section, name)
		if hasValue {
			fmt.Fprintf(&b, " = \"%s\"", strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`).Replace(value))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

type nulCounter struct{ n, left int }

func (c *nulCounter) Write(p []byte) (int, error) {
	c.n += bytes.Count(p, []byte{0})
	if c.left -= len(p); c.left < 0 {
		return 0, ErrOutput
	}
	return len(p), nil
}
