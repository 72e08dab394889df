package scan

import (
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// fromUTF16 decodes a content that begins with a byte order mark of UTF-16.
func fromUTF16(content []byte) ([]byte, bool) {
	if len(content) < 2 {
		return nil, false
	}
	var order binary.ByteOrder
	switch [2]byte(content) {
	case [2]byte{0xff, 0xfe}:
		order = binary.LittleEndian
	case [2]byte{0xfe, 0xff}:
		order = binary.BigEndian
	default:
		return nil, false
	}
	text := make([]byte, 0, len(content)/2)
	for i := 2; i+1 < len(content); i += 2 {
		r := rune(order.Uint16(content[i:]))
		if utf16.IsSurrogate(r) && i+3 < len(content) {
			r = utf16.DecodeRune(r, rune(order.Uint16(content[i+2:])))
			i += 2
		}
		text = utf8.AppendRune(text, r)
	}
	return text, true
}
