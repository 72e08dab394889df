package execs

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
)

// appendLine appends the record as a line of JSON. Package json takes four times as long, for each program.
func (r *Record) appendLine(b []byte) []byte {
	b = r.Time.AppendFormat(append(b, `{"t":"`...), time.RFC3339Nano)
	b = strconv.AppendUint(append(b, `","seq":`...), r.Seq, 10)
	b = strconv.AppendInt(append(b, `,"pid":`...), int64(r.PID), 10)
	b = strconv.AppendInt(append(b, `,"ppid":`...), int64(r.PPID), 10)
	b = appendText(append(b, `,"cwd":`...), &r.CWD)
	b = appendText(append(b, `,"path":`...), &r.Path)
	b, cut := appendTexts(append(b, `,"argv":`...), r.Argv, maxArguments)
	b = appendText(append(b, `,"exe":`...), r.Exe)
	b = appendNumber(append(b, `,"exit":`...), r.Exit)
	b = appendNumber(append(b, `,"ms":`...), r.MS)
	b = strconv.AppendBool(append(b, `,"top":`...), r.Top)
	b = appendText(append(b, `,"deny":`...), r.Deny)
	b = strconv.AppendBool(append(b, `,"disputed":`...), r.Disputed)
	b = strconv.AppendBool(append(b, `,"cut":`...), r.Cut || cut)
	return append(b, '}', '\n')
}

func appendNumber[N int | int64](b []byte, n *N) []byte {
	if n == nil {
		return append(b, "null"...)
	}
	return strconv.AppendInt(b, int64(*n), 10)
}

// appendTexts appends a list of texts. If they need more than most bytes, the rest is cut off.
func appendTexts(b []byte, list []string, most int) (with []byte, cut bool) {
	if list == nil {
		return append(b, "null"...), false
	}
	b = append(b, '[')
	begin := len(b)
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		before := len(b)
		if b = appendText(b, &list[i]); len(b)-begin <= most {
			continue
		}
		return append(appendPart(b[:before], list[i], max(0, begin+most-before)), ']'), true
	}
	return append(b, ']'), false
}

// appendPart appends as much of a text as fits into most bytes.
func appendPart(b []byte, text string, most int) []byte {
	const quotes = 2
	before := len(b)
	for text = text[:min(len(text), most)]; ; text = text[:len(text)*most/(len(b)-before)] {
		if b = appendText(b[:before], &text); len(b)-before <= max(most, quotes) {
			return b
		}
	}
}

// appendText appends a text in JSON. It uses package json only for texts with characters that JSON escapes.
func appendText(b []byte, text *string) []byte {
	if text == nil {
		return append(b, "null"...)
	}
	for _, c := range []byte(*text) {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return appendEscaped(b, *text)
		}
	}
	return append(append(append(b, '"'), *text...), '"')
}

func appendEscaped(b []byte, text string) []byte {
	var quoted bytes.Buffer
	e := json.NewEncoder(&quoted)
	e.SetEscapeHTML(false)
	e.Encode(text) //nolint:errcheck // text can always be encoded
	return append(b, bytes.TrimSuffix(quoted.Bytes(), []byte("\n"))...)
}
