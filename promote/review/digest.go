package review

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"

	"github.com/git-airlock/git-airlock/gitops"
)

// Digest identifies the change and the message of a commit. diff is the output of git diff-tree with whole files, whole blob
// ids, and all files as text. Two commits have the same digest only if their messages are equal and if, for each file, either
// the blobs before and after are the same, or the hunks are equal and each one fits only one place of the file before, in both commits.
func Digest(message, diff []byte) string {
	h := sha256.New()
	h.Write([]byte(gitops.HashObject("sha256", "blob", message)))
	work := searchLimit
	for file := range bytes.SplitSeq(bytes.TrimSuffix(diff, []byte("\n")), []byte("\ndiff --git ")) {
		header, body, _ := bytes.Cut(file, []byte("\n@@ "))
		_, body, _ = bytes.Cut(body, []byte("\n"))
		hunks := hunksOf(body, &work)
		if hunks != nil {
			header = withoutBlobs(header)
		}
		h.Write([]byte("diff\n"))
		h.Write(header)
		for _, hunk := range hunks {
			h.Write([]byte("\n@@\n"))
			h.Write(bytes.Join(hunk, []byte("\n")))
		}
		h.Write([]byte("\n"))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// withoutBlobs removes the blob ids and the mode from the header of a file.
func withoutBlobs(header []byte) []byte {
	before, after, _ := bytes.Cut(header, []byte("\nindex "))
	_, after, _ = bytes.Cut(after, []byte("\n"))
	return bytes.Join([][]byte{before, after}, []byte("\nindex\n"))
}

const (
	// linesLimit and searchLimit bound the memory and the time for a commit, because an agent can write files of any kind.
	linesLimit  = 1 << 20
	searchLimit = 1 << 28 // bytes to search for hunks
	// contextLines is the number of unchanged lines around a change that belong to its hunk, as git has it.
	contextLines = 3
)

// hunksOf returns the hunks of a file, or none if one of them fits more than one place of the file before, or if it takes too long to find
// out. body has all lines of the file, and work is the number of bytes that may still be searched.
func hunksOf(body []byte, work *int) (hunks [][][]byte) {
	if bytes.Count(body, []byte("\n")) > linesLimit {
		return nil
	}
	lines := bytes.Split(body, []byte("\n"))
	start, end := 0, -1
	for i, line := range lines {
		if !bytes.HasPrefix(line, []byte("+")) && !bytes.HasPrefix(line, []byte("-")) {
			continue
		}
		if from := max(0, i-contextLines); from > end {
			start = from
		} else {
			hunks = hunks[:len(hunks)-1] // it continues
		}
		end = min(len(lines), i+1+contextLines)
		hunks = append(hunks, lines[start:end])
	}
	whole := before(lines)
	for _, hunk := range hunks {
		part := before(hunk)
		if *work -= len(whole); *work < 0 || bytes.Index(whole, part) != bytes.LastIndex(whole, part) {
			return nil
		}
	}
	return hunks
}

// before returns the unchanged and removed lines among some lines of a diff, each between newlines.
func before(lines [][]byte) []byte {
	text, added := []byte("\n"), false
	for _, line := range lines {
		if !bytes.HasPrefix(line, []byte(`\`)) { // \ No newline at end of file, about the line above
			added = bytes.HasPrefix(line, []byte("+"))
		}
		if !added {
			text = append(append(text, line[min(1, len(line)):]...), '\n')
		}
	}
	return text
}
