package hostenv

import (
	"path"
	"slices"
	"strings"
)

// Command describes a command line, as far as its words alone show.
type Command struct {
	Program string   // the first word: a path, or a name to look up on PATH
	Words   []string // all words except options, without quotes and expansions
	// Doubtful reports that the words do not show which files the command executes. An interpreter finds its
	// program in other ways, a runner reads it from files of the tree, and a shell's line can contain anything.
	Doubtful bool
}

// interpreters are programs that run what their arguments, or the files around them, contain.
var interpreters = strings.Fields(`
	ash awk bash bazel bazelisk bun bundle bunx busybox cargo cmake command composer csh dash deno direnv doas docker docker-compose dotnet
	elixir emacs env eval exec expect fish find flock gawk go gradle gradlew groovy guile invoke ionice java julia just ksh lefthook lua luajit
	m4 make gmake mawk mise mix mvn mvnw ncat nice nix nix-shell nohup node nodejs npm npx osascript parallel pdm perl php pipenv pnpm
	podman poetry powershell pre-commit pwsh pypy python pyenv R rake raku Rscript ruby scala sed setsid sh socat source stdbuf sudo swift
	systemd-run task tclsh time timeout tox ts-node tsx uv uvx vim vi nvim xargs yarn zsh zx`)

// editors are interpreters, too, but with only these options they run nothing from a file.
var (
	editors       = []string{"emacs", "nvim", "vi", "vim"}
	editorOptions = []string{"-f", "-g", "-n", "-nw", "--nofork", "--no-window-system"}
)

// isPlainEditor reports whether the words of a command line are an editor and options that name no file.
func isPlainEditor(words []string) bool {
	return slices.Contains(editors, path.Base(words[0])) &&
		!slices.ContainsFunc(words[1:], func(w string) bool { return !slices.Contains(editorOptions, w) })
}

// shellLetters are the characters that make a line more than a program and its arguments.
const shellLetters = ";|&$`(){}<>*?[]!#~\\\n"

// IsInterpreter reports whether a program is an interpreter, whatever version its name ends with.
func IsInterpreter(program string) bool {
	name := strings.TrimRight(path.Base(program), "0123456789.-")
	return slices.Contains(interpreters, name) || slices.Contains(interpreters, path.Base(program))
}

// ReadCommand parses a command line like a shell, as far as that is possible without one.
func ReadCommand(line string) Command {
	var c Command
	words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n;|&()<>\"'`={}", r) })
	if len(words) > 0 {
		c.Program = words[0]
	}
	for _, word := range words {
		if !strings.HasPrefix(word, "-") && !isPlaceholder(word) {
			c.Words = append(c.Words, word)
		}
	}
	line = strings.TrimLeft(line, "|- ") // LESSOPEN begins so
	plain := strings.NewReplacer(`"`, "", "'", "", "~/", "").Replace(line)
	for _, p := range []string{"%f", "%O", "%A", "%B", "%L", "%P", "%s"} {
		plain = strings.ReplaceAll(plain, p, "")
	}
	c.Doubtful = strings.ContainsAny(plain, shellLetters) || IsInterpreter(c.Program) && len(words) > 1 && !isPlainEditor(words) ||
		strings.Contains(c.Program, "=")
	return c
}

// isPlaceholder reports whether git or less replaces a word by the name of a file.
func isPlaceholder(word string) bool { return len(word) == 2 && word[0] == '%' }
