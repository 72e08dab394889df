// Package cost bounds the time and memory that git needs for the ignore, attribute and .mailmap files of a commit.
package cost

import (
	"bytes"
	"strconv"
	"strings"
)

// MarkerSize is the attribute with the number of characters in a conflict marker, gitattributes(5).
const MarkerSize = "conflict-marker-size"

// MarkerLimit is the largest number of characters in a conflict marker. Git's default is 7. Projects write a larger number so that no line of
// their texts looks like a marker, and few texts have lines of such characters that are longer. Git writes three markers for each conflict,
// and computes the size of the merged file in an int. With markers of 715,827,882 characters, one conflict is enough for git to write past its
// memory, and with shorter ones a merge can fill the disk.
const MarkerLimit = 100

// LongMarker reports whether git may take the value of [MarkerSize] for a number above [MarkerLimit]. Git reads it with atoi(3): after white space and a sign,
// up to the first character that is not a digit. A number that does not fit into an int becomes another one. So the sign does not matter, and
// every number with more digits than the limit is too large.
func LongMarker(value string) bool {
	digits := strings.TrimLeft(value, " \t\n\v\f\r")
	if digits != "" && (digits[0] == '+' || digits[0] == '-') {
		digits = digits[1:]
	}
	end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
	if end >= 0 {
		digits = digits[:end]
	}
	if digits = strings.TrimLeft(digits, "0"); digits == "" {
		return false
	}
	number, err := strconv.ParseUint(digits, 10, 64)
	return err != nil || number > MarkerLimit
}

// NameLimit is the largest number of different attributes in one file. For each path, git resets all attributes of which it has read the
// names, and a macro that uses a macro takes a part of git's stack. 400,000 names make git status take 3 ms for each file, and a chain of
// 200,000 macros is the end of every git command. The largest collections of attributes have about 30.
const NameLimit = 200

// TotalNames is the largest number of different attributes in all attribute files of the tree, if a commit brings more than [NameLimit] of them.
// Git keeps the names of all files that it has read. Its time is the number of names times that of the paths: 2,000 names make git status
// take about 15 µs for each path, which is three seconds for 200,000 paths. Commits with fewer new names are not added up.
const TotalNames = 2000

// MappedLimit is the largest number of characters ">" in a .mailmap file, which end the addresses. Git puts each address into a sorted
// array, in quadratic time if they come in reverse order: 20,000 of them take 0.2 seconds in every git log, and 400,000 take two minutes.
// The largest projects have about 1,000.
const MappedLimit = 20_000

// Mapped returns the number of addresses that a .mailmap file may contain, however git splits it into lines.
func Mapped(mailmap []byte) int { return bytes.Count(mailmap, []byte(">")) }
