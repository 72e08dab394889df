package execs

import (
	"slices"
	"strings"
)

// call is what a process asked the kernel to execute.
type call struct {
	path string
	argv []string
	cut  bool // a part of path or argv is missing
}

// given is what the kernel gave to a new program.
type given struct {
	path   string
	argv   []string
	cut    bool
	hidden int // see divided
}

// maxInterpreters bounds the words that the kernel puts before the name of a script: an interpreter and an argument for each of
// the five levels of execve(2).
const maxInterpreters = 10

// gave reports whether a program was executed by a call.
func (c call) gave(g given) bool {
	_, ok := c.known(g)
	return ok
}

// known returns the arguments of a call as far as they are known to be those of a program. ok reports whether the program was executed by
// the call. For a script, the kernel puts the interpreter's name and its argument first, and the path of the script replaces the first
// argument. A helper of binfmt_misc may keep that argument.
func (c call) known(g given) (argv []string, ok bool) {
	if c.path != g.path {
		return nil, false
	}
	argv = c.argv
	if len(argv) == 0 {
		argv = []string{""} // as the kernel does
	}
	if c.cut || g.cut {
		return c.argv, alike(argv, g.argv) || alikeScript(argv, g.argv, c.path)
	}
	if fits(argv, g.argv, g.hidden) {
		return g.argv, true
	}
	for n := 1; n <= maxInterpreters && n < len(g.argv); n++ {
		switch after := g.argv[n+1:]; {
		case g.argv[n] != c.path:
		case fits(argv[1:], after, g.hidden):
			return slices.Concat(argv[:1], after), true
		case fits(argv, after, g.hidden):
			return after, true
		}
	}
	return nil, false
}

// fits reports whether a program was given words. A program that reads a list often puts a zero byte in place of each comma, as strtok(3)
// does, in its own copy of the word: getopt(1) does so before the recorder can read that copy. hidden is how many of the words begin
// within others in got.
func fits(asked, got []string, hidden int) bool {
	if len(asked) != len(got)+hidden {
		return false
	}
	if hidden == 0 && slices.Equal(asked, got) {
		return true
	}
	for _, word := range got { // it consists of one or more of the words
		if len(asked) == 0 {
			return false
		}
		n := 1
		for length := len(asked[0]); length < len(word) && n < len(asked); n++ {
			length += len(asked[n]) + 1
		}
		if !overwritten(strings.Join(asked[:n], zero), word) {
			return false
		}
		asked = asked[n:]
	}
	return len(asked) == 0
}

// zero is a zero byte.
const zero = "\x00"

// overwritten reports whether two texts differ only in commas that are zero bytes now.
func overwritten(before, now string) bool {
	if len(before) != len(now) {
		return false
	}
	for i := range len(now) {
		if now[i] != before[i] && (now[i] != 0 || before[i] != ',') {
			return false
		}
	}
	return true
}

// divided returns what the kernel gave to a program that has written zero bytes into its arguments. A zero byte does not show any more that
// a word ends there, so that words begin where the kernel's list of the arguments points to. from is the address of the first word. The
// program may have changed the order of the list, as getopt_long(3) does, or put another word in place of one, as getopt(1) does: then
// nothing shows where that one begins, and it is hidden in the word before it. ok is false if the list points into the middle of a word.
func (g given) divided(from uint64, pointers []uint64) (_ given, ok bool) {
	all := strings.Join(g.argv, zero) + zero
	end := from + uint64(len(all))
	starts := slices.DeleteFunc(slices.Clone(pointers), func(p uint64) bool { return p < from || p >= end })
	slices.Sort(starts)
	starts = slices.Compact(starts)
	if g.cut || len(starts) == 0 || starts[0] != from {
		return g, false
	}
	words := make([]string, len(starts))
	for i, start := range starts {
		next := end
		if i+1 < len(starts) {
			next = starts[i+1]
		}
		if all[next-from-1] != 0 {
			return g, false
		}
		words[i] = all[start-from : next-from-1]
	}
	return given{path: g.path, argv: words, hidden: len(pointers) - len(starts)}, true
}

// direct reports whether the file of a call was executed itself, and not by an interpreter, which gets more arguments.
func (c call) direct(g given) bool { return len(g.argv)+g.hidden <= max(len(c.argv), 1) }

// alike reports whether two lists of arguments are equal in the part that both have.
func alike(a, b []string) bool {
	n := min(len(a), len(b)) - 1 // the last word may be a part
	return n < 0 || slices.Equal(a[:n], b[:n]) && (strings.HasPrefix(a[n], b[n]) || strings.HasPrefix(b[n], a[n]))
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
