package execs

import "slices"

// call is what a process asked the kernel to execute.
type call struct {
	path string
	argv []string
	cut  bool // a part of path or argv is missing
}

// given is what the kernel gave to a new program.
type given struct {
	path string
	argv []string
	cut  bool
}

// maxInterpreters bounds the words that the kernel puts before the name of a script: an interpreter and an argument for each of
// the five levels of execve(2).
const maxInterpreters = 10

// gave reports whether a program was executed by a call. For a script, the kernel puts the interpreter's name and its argument
// first, and the path of the script replaces the first argument. A helper of binfmt_misc may keep that argument.
func (c call) gave(g given) bool {
	if c.path != g.path {
		return false
	}
	argv := c.argv
	if len(argv) == 0 {
		argv = []string{""} // as the kernel does
	}
	if c.cut || g.cut {
		return alike(argv, g.argv) || alikeScript(argv, g.argv, c.path)
	}
	if slices.Equal(argv, g.argv) {
		return true
	}
	rest := argv[1:]
	for n := 1; n <= maxInterpreters && n < len(g.argv); n++ {
		after := g.argv[n:]
		if after[0] == c.path && (slices.Equal(after[1:], rest) || slices.Equal(after[1:], argv)) {
			return true
		}
	}
	return false
}

// direct reports whether the file of a call was executed itself, and not by an interpreter, which gets more arguments.
func (c call) direct(g given) bool { return len(g.argv) <= max(len(c.argv), 1) }

// alike reports whether two lists of arguments are equal in the part that both have.
func alike(a, b []string) bool {
	n := min(len(a), len(b)) - 1 // the last word may be a part
	for i := 0; i < n; i++ {
		if a[i] != b[i] {
			return false
		}
	}
	if n < 0 {
		return true
	}
	m := min(len(a[n]), len(b[n]))
	return a[n][:m] == b[n][:m]
}

// alikeScript is alike for scripts.
func alikeScript(argv, got []string, path string) bool {
	for n := 1; n <= maxInterpreters && n < len(got); n++ {
		if got[n] == path && alike(argv[1:], got[n+1:]) {
			return true
		}
	}
	return false
}
