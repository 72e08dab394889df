package userhook

import (
	"bytes"
	"path"
	"slices"
	"strings"
)

// mark is at the end of the line in every hook. madeMark replaces it if the file of the hook did not exist before, and folderMark if its folder did
// not exist either.
const (
	mark       = "# git airlock hooks"
	madeMark   = mark + ", with this file"
	folderMark = mark + ", with this folder"
)

// script is the line for a pre-push hook. It copies the hook's standard input to a file. This program reads the file, and the rest of the hook gets
// it as its standard input. If the program is not installed any more, the push goes on.
const script = `if command -v git-airlock >/dev/null 2>&1; then airlock=$(mktemp) && cat >"$airlock" && git-airlock hooks pre-push "$@" <"$airlock" || ` +
	`{ set -- $?; rm -f "$airlock"; exit "$1"; }; exec <"$airlock"; rm -f "$airlock"; ` +
	`else echo "airlock: git-airlock is not on PATH, so this push is not checked" >&2; fi `

// Line is the line that [Place.Install] adds to a hook, without a newline.
const Line = script + mark

// newFile is the beginning of a hook that did not exist.
const newFile = "#!/bin/sh\n"

// insert returns a hook with the line. An older form of the line is replaced.
func insert(hook []byte) []byte {
	if from, to, there := find(hook); there {
		return slices.Concat(hook[:from], []byte(script), markOf(hook[from:to]), hook[to:])
	}
	at := 0
	if bytes.HasPrefix(hook, []byte("#!")) {
		if at = 1 + bytes.IndexByte(hook, '\n'); at == 0 { // the only line has no newline
			return slices.Concat(hook, []byte("\n"+Line))
		}
	}
	return slices.Concat(hook[:at], []byte(Line+"\n"), hook[at:])
}

// without returns a hook without the line, and reports whether the line was there.
func without(hook []byte) ([]byte, bool) {
	from, to, there := find(hook)
	switch {
	case !there:
		return hook, false
	case to < len(hook):
		to++ // with its newline
	case from > 0:
		from-- // with the newline that insert put before it
	}
	return slices.Concat(hook[:from], hook[to:]), true
}

// find returns where the line is, without its newline.
func find(hook []byte) (from, to int, there bool) {
	for from < len(hook) {
		to = len(hook)
		if n := bytes.IndexByte(hook[from:], '\n'); n >= 0 {
			to = from + n
		}
		if bytes.HasPrefix(hook[from:to], []byte("if command -v git-airlock ")) && markOf(hook[from:to]) != nil {
			return from, to, true
		}
		from = to + 1
	}
	return 0, 0, false
}

// markOf returns the mark at the end of a line, nil if there is none.
func markOf(line []byte) []byte {
	for _, m := range []string{mark, madeMark, folderMark} {
		if bytes.HasSuffix(line, []byte(m)) {
			return []byte(m)
		}
	}
	return nil
}

// shells are the interpreters in which the line works.
var shells = []string{"sh", "ash", "bash", "busybox", "dash", "ksh", "mksh", "yash", "zsh"}

// unfit returns why the line does not work in a hook, or empty. Git runs a file without an interpreter with sh.
func unfit(hook []byte) string {
	first, _, _ := bytes.Cut(hook, []byte("\n"))
	named, hasInterpreter := bytes.CutPrefix(first, []byte("#!"))
	switch {
	case hasInterpreter && bytes.HasSuffix(named, []byte("\r")):
		return "its first line ends with a carriage return, so that it cannot be run"
	case hasInterpreter && !slices.Contains(shells, interpreter(string(named))):
		return "it is not a shell script"
	case bytes.IndexByte(hook, 0) >= 0:
		return "it is not a script"
	}
	return ""
}

// interpreter returns the name of the program that a line "#!" names, also with env(1).
func interpreter(line string) string {
	words := strings.Fields(line)
	for n, word := range words {
		if base := path.Base(word); n > 0 || base != "env" {
			if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
				return base
			}
		}
	}
	return ""
}
