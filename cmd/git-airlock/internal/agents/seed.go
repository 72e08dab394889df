package agents

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/words"
)

// keyEnd stands for the last 20 characters of the value of a file's variable, and keyMark for all of it.
const keyEnd, keyMark = "@KEY-END@", "@KEY@"

// seedScript begins a script that writes files below the home. A line for each file follows, which calls put with the path, a variable
// or nothing, "needed" if the file is made only with that variable, the sign of a keyed part or nothing, the content, and all contents that
// profiles have for this path. The first content for a path is written. A file that exists stays, unless an earlier start has written
// it in just this form: its key or login may be another one now. Of a file that the agent has changed and that lacks the sign, the script
// prints the path, the sign, the end of the key, and the content, so that [Seed] can set the keyed part.
//
// In a prison nobody else writes there, but an agent of an earlier run may have left a link there, which is not followed, under neither
// of the two names. The script starts few programs, since an agent waits for it.
const seedScript = `
set -euC
LC_ALL=C
umask 077
cd "$HOME"
seen=/
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
fill() { # fill TEXT sets replaced
	replace "$1" ` + keyEnd + ` "$end"
	replace "$replaced" ` + keyMark + ` "$key"
}
written() { # written FORM: has the file this form, whatever the key is?
	form=$1 rest=$found
	while :; do
		case $form in
		*` + keyMark + `* | *` + keyEnd + `*) ;;
		*) [ "$rest" = "$form" ]; return ;;
		esac
		before=${form%%` + keyMark + `*}
		before=${before%%` + keyEnd + `*}
		case $rest in "$before"*) ;; *) return 1 ;; esac
		rest=${rest#"$before"}
		rest=${rest#"${rest%%[!A-Za-z0-9._-]*}"}
		form=${form#"$before"}
		form=${form#@*@}
	done
}
put() {
	path=$1 name=$2 needed=$3 sign=$4 content=$5 key= found=
	if [ "$name" ]; then eval "key=\${$name-}"; fi
	case $needed$key in needed) return 0 ;; esac
	case $seen in *"/:$path:/"*) return 0 ;; esac
	seen=$seen:$path:/
	case $key in *[!A-Za-z0-9._-]*) key= ;; esac
	end=$key
	while [ ${#end} -gt 20 ]; do end=${end#?}; done
	fill "$content"
	content=$replaced
	if [ -e "$path" ] || [ -L "$path" ]; then
		[ -f "$path" ] && [ ! -L "$path" ] || return 0
		[ "$name$sign" ] || [ $# -gt 6 ] || return 0 # it depends on nothing
		found=$(head -c "$most" "$path" && echo .) || return 0
		found=${found%.}
		[ "$found" != "$content" ] || return 0
		[ ${#found} -eq "$(head -c "$most" "$path" | wc -c)" ] || return 0 # a shell leaves out zero bytes
		shift 5
		for form; do
			if written "$form"; then store -f; return; fi
		done
		fill "$sign"
		case $replaced in ?*)
			case $found in
			*"\"$replaced\""*) ;;
			*) printf '%s\n%s\n%s\n%s' "$path" "$replaced" "$end" "$found" ;;
			esac
		esac
		return 0
	fi
	store -n
}
store() { # store -n or store -f, if there is a file to replace
	case $path in */*) [ -d "${path%/*}" ] || mkdir -p "${path%/*}" ;; esac
	[ ! -e "$path.new" ] && [ ! -L "$path.new" ] || rm -f "$path.new"
	printf %s "$content" >"$path.new"
	mv "$1" "$path.new" "$path"
}
`

// Seed writes the files of a profile into the home of a running prison, as the agent and inside. A file that the agent has changed keeps the
// changes, but its keyed part is set.
func Seed(ctx context.Context, box prison.Prison, p Profile) error {
	if len(p.Files) == 0 {
		return nil
	}
	script := call("most=", strconv.Itoa(largestSeeded+1)) + seedScript
	for _, f := range p.Files {
		words := []string{f.Path, f.Key, "", f.sign(), f.Content}
		if f.Needs {
			words[2] = "needed"
		}
		for _, other := range p.Files {
			if other.Path == f.Path {
				words = append(words, other.Content)
			}
		}
		script += call("put", words...)
	}
	changed, err := p.runSeed(ctx, box, script)
	if err != nil || changed == "" {
		return err
	}
	said := strings.SplitN(changed, "\n", 4)
	if len(said) != 4 || len(changed) > largestSeeded {
		return nil
	}
	path, end, content := said[0], said[2], said[3]
	for _, f := range p.Files {
		if f.Path != path || f.Keyed == "" || strings.ReplaceAll(f.sign(), keyEnd, end) != said[1] {
			continue
		}
		merged, err := merge(content, strings.ReplaceAll(f.Keyed, keyEnd, end))
		if err != nil {
			return nil //nolint:nilerr // the agent, or the user, has made something else of the file: it stays
		}
		_, err = p.runSeed(ctx, box, seedScript+call("path=", path)+call("content=", merged)+"store -f\n")
		return err
	}
	return nil
}

const (
	// largestSeeded is the size in bytes above which a changed file is left as it is.
	largestSeeded = 1 << 20
	// seedTime bounds a script. An agent that runs already could put a pipe in the place of a file, and nobody writes into it.
	seedTime = 30 * time.Second
)

// call returns a line of a script: a function with its arguments, or a variable and "=" with its value.
func call(name string, args ...string) string {
	line := name
	for i, arg := range args {
		if i > 0 || !strings.HasSuffix(name, "=") {
			line += " "
		}
		line += words.ShellQuote(arg)
	}
	return line + "\n"
}

// runSeed runs a script in the prison, and returns its output. The shell reads the script from its input: arguments would be in the record
// of what ran inside.
func (p Profile) runSeed(ctx context.Context, box prison.Prison, script string) (string, error) {
	out, said := prison.Capped{Max: largestSeeded + 1}, prison.Capped{Max: 1000}
	ctx, cancel := context.WithTimeout(ctx, seedTime)
	defer cancel()
	status, err := box.Exec(ctx, prison.Process{Argv: []string{"/bin/sh"}, Dir: "/", Stdin: strings.NewReader(script), Stdout: &out, Stderr: &said})
	if err != nil {
		return "", fmt.Errorf("%s: write the files in its home: %w", p.Name, err)
	}
	if status != 0 {
		return "", fmt.Errorf("%s: cannot write the files in its home: exit status %d: %s", p.Name, status, strings.TrimSpace(said.String()))
	}
	return out.String(), nil
}
