package agents

import (
	"context"
	"fmt"
	"strings"

	"github.com/git-airlock/git-airlock/prison"
)

// keyEnd stands for the last 20 characters of the value of a file's variable, and keyMark for all of it.
const keyEnd, keyMark = "@KEY-END@", "@KEY@"

// seedScript writes its standard input into the file of its first argument below the home, unless there is one, or unless the
// variable of its second argument is not set. In a prison nobody else writes there, but an agent of an earlier run may have left a
// link there, which is not followed, under neither of the two names.
const seedScript = `
set -euC
umask 077
cd "$HOME"
key=
if [ "$2" ]; then eval "key=\${$2-}"; fi
case $3$key in needed) exit 0 ;; esac
case $key in *[!A-Za-z0-9._-]*) key= ;; esac
[ ! -e "$1" ] && [ ! -L "$1" ] || exit 0
mkdir -p "$(dirname "$1")"
rm -f "$1.new"
sed "s/` + keyEnd + `/$(printf %s "$key" | tail -c 20)/; s/` + keyMark + `/$key/g" >"$1.new"
mv -n "$1.new" "$1"
`

// Seed writes the files of a profile into the home of a running prison, as the agent and inside. Existing files stay.
func Seed(ctx context.Context, box prison.Prison, p Profile) error {
	for _, f := range p.Files {
		needed := ""
		if f.Needs {
			needed = "needed"
		}
		said := prison.Capped{Max: 1000}
		status, err := box.Exec(ctx, prison.Process{
			Argv: []string{"/bin/sh", "-c", seedScript, "sh", f.Path, f.Key, needed}, Dir: "/",
			Stdin: strings.NewReader(f.Content), Stderr: &said,
		})
		if err != nil {
			return err
		}
		if status != 0 {
			return fmt.Errorf("%s: cannot write ~/%s: exit status %d: %s", p.Name, f.Path, status, strings.TrimSpace(said.String()))
		}
	}
	return nil
}
