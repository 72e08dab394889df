package agents

import (
	"context"
	"fmt"
	"strings"

	"github.com/git-airlock/git-airlock/prison"
)

// keyEnd stands for the last 20 characters of the key of claude, which asks about a key that it does not know.
const keyEnd = "@KEY-END@"

// seedScript writes its standard input into the file of its argument below the home, unless there is one. In a prison nobody else
// writes there, but an agent of an earlier run may have left a link there, which is not followed.
const seedScript = `
set -eu
umask 077
cd "$HOME"
case ${ANTHROPIC_API_KEY-} in *[!A-Za-z0-9_-]* | '') end= ;; *) end=$(printf %s "$ANTHROPIC_API_KEY" | tail -c 20) ;; esac
[ ! -e "$1" ] && [ ! -L "$1" ] || exit 0
mkdir -p "$(dirname "$1")"
sed "s/` + keyEnd + `/$end/" >"$1.new"
mv -n "$1.new" "$1"
`

// Seed writes the files of a profile into the home of a running prison, as the agent and inside. Existing files stay.
func Seed(ctx context.Context, box prison.Prison, p Profile) error {
	for _, f := range p.Files {
		said := prison.Capped{Max: 1000}
		status, err := box.Exec(ctx, prison.Process{
			Argv: []string{"/bin/sh", "-c", seedScript, "sh", f.Path}, Dir: "/",
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
