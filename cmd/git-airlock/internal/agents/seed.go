package agents

import (
	"context"
	"fmt"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
)

// keyEnd stands for the last 20 characters of the value of a file's variable, and keyMark for all of it.
const keyEnd, keyMark = "@KEY-END@", "@KEY@"

// seedScript begins a script that writes files below the home. A line for each file follows, which calls put with the path, a variable
// or nothing, "needed" if the file is made only with that variable, and the content. A file that exists stays. In a prison nobody else
// writes there, but an agent of an earlier run may have left a link there, which is not followed, under neither of the two names. The
// script starts few programs, since an agent waits for it.
const seedScript = `
set -euC
umask 077
cd "$HOME"
replace() { # replace TEXT MARK VALUE sets replaced
	replaced= rest=$1
	while :; do
		case $rest in
		*"$2"*) replaced=$replaced${rest%%"$2"*}$3 rest=${rest#*"$2"} ;;
		*) break ;;
		esac
	done
	replaced=$replaced$rest
}
put() {
	path=$1 name=$2 needed=$3 content=$4 key=
	if [ "$name" ]; then eval "key=\${$name-}"; fi
	case $needed$key in needed) return 0 ;; esac
	case $key in *[!A-Za-z0-9._-]*) key= ;; esac
	[ ! -e "$path" ] && [ ! -L "$path" ] || return 0
	case $path in */*) [ -d "${path%/*}" ] || mkdir -p "${path%/*}" ;; esac
	[ ! -e "$path.new" ] && [ ! -L "$path.new" ] || rm -f "$path.new"
	end=$key
	while [ ${#end} -gt 20 ]; do end=${end#?}; done
	replace "$content" ` + keyEnd + ` "$end"
	replace "$replaced" ` + keyMark + ` "$key"
	printf %s "$replaced" >"$path.new"
	mv -n "$path.new" "$path"
}
`

// Seed writes the files of a profile into the home of a running prison, as the agent and inside. Existing files stay. The shell reads the
// script from its input: arguments would be in the record of what ran inside.
func Seed(ctx context.Context, box prison.Prison, p Profile) error {
	if len(p.Files) == 0 {
		return nil
	}
	script := seedScript
	for _, f := range p.Files {
		words := []string{"put", f.Path, f.Key, "", f.Content}
		if f.Needs {
			words[3] = "needed"
		}
		for i, word := range words {
			words[i] = gitops.ShellQuote(word)
		}
		script += strings.Join(words, " ") + "\n"
	}
	said := prison.Capped{Max: 1000}
	status, err := box.Exec(ctx, prison.Process{Argv: []string{"/bin/sh"}, Dir: "/", Stdin: strings.NewReader(script), Stderr: &said})
	if err != nil {
		return err
	}
	if status != 0 {
		return fmt.Errorf("%s: cannot write the files in its home: exit status %d: %s", p.Name, status, strings.TrimSpace(said.String()))
	}
	return nil
}
