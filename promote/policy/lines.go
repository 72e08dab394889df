package policy

import (
	"bytes"
	"hash/maphash"
)

// run is a part of a file that a commit added: lines that follow each other.
type run struct {
	line int // number of the first, counted from 1
	at   int // where they begin
	text []byte
}

// addedRuns lists the lines of a file that its former content does not have. Lines that moved within the part that
// changed, or whose ending changed between LF and CRLF, are not added. It needs eight bytes a line of that
// part, and no time for finding the shortest difference.
func addedRuns(old, new []byte) []run {
	begin, end := inCommon(old, new)
	before, after := old[begin:len(old)-end], new[begin:len(new)-end]
	if len(after) == 0 {
		return nil
	}
	first := 1 + bytes.Count(new[:begin], []byte("\n"))
	if len(before) == 0 {
		return []run{{first, begin, after}}
	}
	seed := maphash.MakeSeed()
	had := map[uint64]struct{}{}
	for line := range bytes.Lines(before) {
		had[maphash.Bytes(seed, trimEnd(line))] = struct{}{}
	}
	var runs []run
	number, offset, begun := first-1, 0, -1
	for line := range bytes.Lines(after) {
		number++
		if _, known := had[maphash.Bytes(seed, trimEnd(line))]; known {
			begun = -1
		} else {
			if begun < 0 {
				begun = offset
				runs = append(runs, run{line: number, at: begin + begun})
			}
			runs[len(runs)-1].text = after[begun : offset+len(line)]
		}
		offset += len(line)
	}
	return runs
}

// inCommon returns how many bytes at the beginning and at the end two contents have in common, in whole lines.
func inCommon(old, new []byte) (begin, end int) {
	shorter := min(len(old), len(new))
	for begin < shorter && old[begin] == new[begin] {
		begin++
	}
	begin = bytes.LastIndexByte(new[:begin], '\n') + 1
	for end < shorter-begin && old[len(old)-1-end] == new[len(new)-1-end] {
		end++
	}
	tail := new[len(new)-end:]
	// What is in common begins with a whole line only behind a line break.
	if i := bytes.IndexByte(tail, '\n'); i >= 0 {
		return begin, len(tail) - i - 1
	}
	return begin, 0
}

func trimEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}

// isBinary reports whether git would take content for binary: there is a NUL near its beginning.
func isBinary(content []byte) bool {
	return bytes.IndexByte(content[:min(len(content), 8000)], 0) >= 0
}
