package credential

import (
	"html"
	"strconv"
	"strings"
	"unicode"
)

// maxEscape is the maximum length of an escape: an entity of HTML that stands for an ASCII character, such as "&#x0002f;".
const maxEscape = 10

// escapes are the characters that begin an escape.
const escapes = `%\&`

// unescape appends a text to plain, and replaces percent encodings, escapes of JSON and JavaScript, and entities of HTML that stand for an
// ASCII character. It leaves out an incomplete escape at the end, and returns how many bytes are before that.
func unescape(plain, text []byte) (_ []byte, size int) {
	for at := 0; at < len(text); {
		c, size := text[at], 1
		if c == '%' || c == '\\' || c == '&' {
			if c, size = unescapeOne(text[at:]); size == 0 {
				return plain, at
			}
		}
		plain, at = append(plain, c), at+size
	}
	return plain, len(text)
}

// unescapeOne returns the first character of a text, and how many bytes of the text it takes, 0 if the text may be incomplete.
func unescapeOne(text []byte) (c byte, size int) {
	switch text[0] {
	case '%':
		return unescapeHex(text, "%", 2)
	case '\\':
		if len(text) == 1 {
			return 0, 0
		}
		switch text[1] {
		case 'u':
			return unescapeHex(text, `\u`, 4)
		case 'x':
			return unescapeHex(text, `\x`, 2)
		case 'n':
			return '\n', 2
		case 'r':
			return '\r', 2
		case '/', '\\', '"', '\'':
			return text[1], 2
		}
	case '&':
		return unescapeEntity(text)
	}
	return text[0], 1
}

// unescapeHex reads an escape: begin and a number of hexadecimal digits.
func unescapeHex(text []byte, begin string, digits int) (byte, int) {
	end := len(begin) + digits
	for i := len(begin); i < min(end, len(text)); i++ {
		if strings.IndexByte("0123456789abcdefABCDEF", text[i]) < 0 {
			return text[0], 1
		}
	}
	if len(text) < end {
		return 0, 0
	}
	code, err := strconv.ParseUint(string(text[len(begin):end]), 16, 16)
	if err != nil || code > unicode.MaxASCII {
		return text[0], 1
	}
	return byte(code), end
}

// unescapeEntity reads an entity of HTML.
func unescapeEntity(text []byte) (byte, int) {
	for i := 1; i < maxEscape; i++ {
		if i == len(text) {
			return 0, 0
		}
		switch c := text[i]; {
		case c == ';':
			if s := html.UnescapeString(string(text[:i+1])); len(s) == 1 {
				return s[0], i + 1
			}
			return text[0], 1
		case c != '#' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z'):
			return text[0], 1
		}
	}
	return text[0], 1
}
