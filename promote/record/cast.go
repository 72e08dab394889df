package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// CastHeader is the first line of [TerminalName].
type CastHeader struct {
	Version   int   `json:"version"` // 2
	Width     int   `json:"width"`
	Height    int   `json:"height"`
	Timestamp int64 `json:"timestamp"` // seconds since 1970
}

// CastEvent is output of a terminal.
type CastEvent struct {
	At   time.Duration // since the start
	Text string        // as the terminal got it; bytes that are not UTF-8 are replaced
}

// EncodeCast returns the file [TerminalName].
func EncodeCast(h CastHeader, events []CastEvent) ([]byte, error) {
	h.Version = 2
	var b bytes.Buffer
	lines := lineEncoder(&b)
	err := lines.Encode(h)
	for _, e := range events {
		if err == nil {
			err = lines.Encode([]any{json.Number(fmt.Sprintf("%.6f", e.At.Seconds())), "o", strings.ToValidUTF8(e.Text, "\uFFFD")})
		}
	}
	return b.Bytes(), err
}

// DecodeCast reads the file [TerminalName]. It returns output only.
func DecodeCast(content []byte) (h CastHeader, events []CastEvent, err error) {
	header, rest, whole := bytes.Cut(content, []byte("\n"))
	if !whole || len(header) > maxLine {
		return h, nil, fmt.Errorf("read %s: it has no header", TerminalName)
	}
	if err := json.Unmarshal(header, &h); err != nil || h.Version != 2 {
		return h, nil, fmt.Errorf("read %s: it is not an asciicast of version 2", TerminalName)
	}
	err = eachLine(TerminalName, rest, func(line []byte) error {
		var seconds float64
		var kind, text string
		if err := json.Unmarshal(line, &[]any{&seconds, &kind, &text}); err != nil {
			return err
		}
		if kind == "o" {
			events = append(events, CastEvent{time.Duration(seconds * float64(time.Second)), text})
		}
		return nil
	})
	return h, events, err
}

// WithoutHeader returns the lines after the first one.
func WithoutHeader(cast []byte) []byte {
	_, events, _ := bytes.Cut(cast, []byte("\n"))
	return events
}

// WholeCharacters returns the number of bytes up to the last character that may go on. It is 0 if there is only the beginning of
// one.
func WholeCharacters(output []byte) int {
	for n := max(0, len(output)-utf8.UTFMax+1); n < len(output); n++ {
		if utf8.RuneStart(output[n]) && !utf8.FullRune(output[n:]) {
			return n
		}
	}
	return len(output)
}
