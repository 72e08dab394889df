package filekind

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestASCIICharsets converts all characters with iconv: those outside of ASCII must not become ASCII bytes.
func TestASCIICharsets(t *testing.T) {
	if _, err := exec.LookPath("iconv"); err != nil {
		t.Skip(err)
	}
	var others strings.Builder
	for r := rune(utf8.RuneSelf); r < 0x30000; r++ {
		if utf8.ValidRune(r) {
			others.WriteRune(r)
		}
	}
	for charset, safe := range map[string]bool{
		"UTF-8": true, "US-ASCII": true, "ISO-8859-1": true, "ISO_8859-16": true, "latin2": true, "windows-1252": true, "CP1255": true, "CP874": true, "KOI8-R": true,
		"TIS-620": true, "EUC-KR": true, "EUC-TW": true, "GB2312": true, "MACINTOSH": true,
		"EUC-JP": false, "Shift_JIS": false, "BIG5": false, "GBK": false, "GB18030": false, "CP1258": false, "UTF-16LE": false, "UTF-7": false, "ISO-2022-JP": false, "CP932": false,
	} {
		convert := exec.Command("iconv", "-c", "-f", "UTF-8", "-t", charset)
		convert.Stdin = strings.NewReader(others.String())
		out, _ := convert.Output() // it ends with 1 because of -c
		ascii := bytes.IndexFunc(out, func(r rune) bool { return r < utf8.RuneSelf }) >= 0
		if ASCIICharset(charset) != safe || safe == ascii || !CommonCharset(charset) {
			t.Errorf("%s: safe %t, with ASCII bytes %t, common %t", charset, ASCIICharset(charset), ascii, CommonCharset(charset))
		}
	}
}

func TestText(t *testing.T) {
	for content, text := range map[string]bool{
		"": true, "a": true, "#!/bin/sh\x00\x01": true, strings.Repeat("text ", 10) + "\x00": true, strings.Repeat("\u00e9", 40) + "\x00": true,
		"a\x00": false, strings.Repeat("\xe9", 40) + "\x00": false, strings.Repeat("a\x00", 40): false,
	} {
		if Text([]byte(content)) != text {
			t.Errorf("%q: want %t", content, text)
		}
	}
}
