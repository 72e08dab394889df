package gitops

import (
	"fmt"
	"strconv"
)

// Mode is the kind of a tree's entry, as git reads it; the zero Mode is "not there". Only [parseMode] makes a Mode of what a
// tree object says, so that everybody who looks at an entry sees what git makes of it.
type Mode uint16

// The modes that there are.
const (
	ModeFile       Mode = 0o100644
	ModeExecutable Mode = 0o100755
	ModeLink       Mode = 0o120000
	ModeGitlink    Mode = 0o160000
	ModeFolder     Mode = 0o040000
)

// String is the mode as git prints it, with six digits.
func (m Mode) String() string { return fmt.Sprintf("%06o", uint16(m)) }

// written is the mode as git writes it into a tree object.
func (m Mode) written() string { return strconv.FormatUint(uint64(m), 8) }

// parseMode reads a mode as it is written in a tree object. Git adds octal digits up and keeps 16 bits (tree-walk.c,
// get_mode), and takes what it has for the one of its own modes that it resembles (canon_mode). What resembles none is a gitlink.
// ok is false for what git does not read at all.
func parseMode(text string) (m Mode, ok bool) {
	var bits uint16
	for i := range len(text) {
		if text[i] < '0' || text[i] > '7' {
			return 0, false
		}
		bits = bits<<3 | uint16(text[i]-'0')
	}
	switch bits & 0o170000 {
	case 0o100000:
		m = ModeFile
		if bits&0o100 != 0 {
			m = ModeExecutable
		}
	case 0o120000:
		m = ModeLink
	case 0o040000:
		m = ModeFolder
	default:
		m = ModeGitlink
	}
	return m, text != ""
}

// properMode reports whether a mode is written as git writes it, or as git once did: group-writable files had 100664.
func properMode(text string) bool {
	switch text {
	case "100644", "100755", "120000", "160000", "40000", "100664":
		return true
	}
	return false
}
