package review

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"

	"github.com/git-airlock/git-airlock/gitops"
)

// Digest identifies the change and the message of a commit. diff is the output of git diff-tree with whole blob ids and
// all files as text. Two commits have the same digest only if their messages and diffs are equal, apart from line
// numbers and blob ids.
func Digest(message []byte, diff io.Reader) (string, error) {
	h := sha256.New()
	h.Write([]byte(gitops.HashObject("sha256", "blob", message)))
	in := bufio.NewReaderSize(diff, lineLimit)
	for start := true; ; {
		part, err := in.ReadSlice('\n') // a long line comes in parts, which are hashed as they are
		if start {
			part = withoutPlace(part)
		}
		h.Write(part)
		start = bytes.HasSuffix(part, []byte("\n"))
		switch {
		case err == nil, errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return hex.EncodeToString(h.Sum(nil)), nil
		default:
			return "", err
		}
	}
}

// withoutPlace removes line numbers from the header of a hunk, and the blob ids of a file. A line of a file's content
// starts with another character.
func withoutPlace(line []byte) []byte {
	switch {
	case bytes.HasPrefix(line, []byte("@@ ")):
		return []byte("@@\n")
	case bytes.HasPrefix(line, []byte("index ")):
		return []byte("index\n")
	}
	return line
}
