package policy

import (
	"bytes"
	"hash/maphash"
)

// run is a part of a file that a commit added: lines that follow each other.
type run struct {
	line int // number of the first, counted from 1
	text []byte
}

// addedRuns lists the lines of a file that its former content does not have anywhere. Lines that only moved,
// or whose ending changed between LF and CRLF, are not added. It needs eight bytes a line of the former content,
// and no time for finding the shortest difference.
func addedRuns(old, new []byte) []run {
	if len(old) == 0 {
		if len(new) == 0 {
			return nil
		}
		return []run{{1, new}}
	}
	seed := maphash.MakeSeed()
	had := map[uint64]struct{}{}
	for line := range bytes.Lines(old) {
		had[maphash.Bytes(seed, trimEnd(line))] = struct{}{}
	}
	var runs []run
	number, offset, begun := 0, 0, -1
	for line := range bytes.Lines(new) {
		number++
		if _, known := had[maphash.Bytes(seed, trimEnd(line))]; known {
			begun = -1
		} else {
			if begun < 0 {
				begun = offset
				runs = append(runs, run{line: number})
			}
			runs[len(runs)-1].text = new[begun : offset+len(line)]
		}
		offset += len(line)
	}
	return runs
}

func trimEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}

// isBinary tells whether git would take content for binary: there is a NUL near its beginning.
func isBinary(content []byte) bool {
	return bytes.IndexByte(content[:min(len(content), 8000)], 0) >= 0
}
