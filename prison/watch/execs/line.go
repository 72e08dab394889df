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
	b = appendTexts(append(b, `,"argv":`...), r.Argv)
	b = appendText(append(b, `,"exe":`...), r.Exe)
	b = appendNumber(append(b, `,"exit":`...), r.Exit)
	b = appendNumber(append(b, `,"ms":`...), r.MS)
	b = strconv.AppendBool(append(b, `,"top":`...), r.Top)
	b = appendText(append(b, `,"deny":`...), r.Deny)
	b = strconv.AppendBool(append(b, `,"disputed":`...), r.Disputed)
	b = strconv.AppendBool(append(b, `,"cut":`...), r.Cut)
	return append(b, '}', '\n')
}

func appendNumber[N int | int64](b []byte, n *N) []byte {
	if n == nil {
		return append(b, "null"...)
	}
	return strconv.AppendInt(b, int64(*n), 10)
}

func appendTexts(b []byte, list []string) []byte {
	if list == nil {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, &list[i])
	}
	return append(b, ']')
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
