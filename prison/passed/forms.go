package passed

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Forms returns the forms in which programs show a value: unchanged, in base64, and escaped for JSON, addresses and shells.
func Forms(value string) (forms []string) {
	add := func(texts ...string) {
		for _, text := range texts {
			if !slices.Contains(forms, text) {
				forms = append(forms, text)
			}
		}
	}
	add(value)
	add(Base64(value)...)
	if quoted, err := json.Marshal(value); err == nil {
		text := string(quoted[1 : len(quoted)-1])
		add(text, strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(text))
	}
	add(percent(value, "%%%02X", "-_.~"), percent(value, "%%%02x", "-_.~"), // curl and jq
		percent(value, "%%%02X", "-_.~/"), percent(value, "%%%02X", "-_.~!'()*"), percent(value, "%%%02X", "-_.~$&+=:@"), // Python, JavaScript, Go
		strings.ReplaceAll(percent(value, "%%%02X", "-_.~ "), " ", "+")) // HTML forms
	add(strings.ReplaceAll(value, "'", `'\''`), strings.ReplaceAll(value, "'", `'"'"'`),
		escaped(value, func(c byte) bool { return strings.IndexByte("\"\\$`", c) >= 0 }, `\%c`),
		escaped(value, func(c byte) bool { return c < 0x80 && !plain(c) && strings.IndexByte("_./:=@%+,-", c) < 0 }, `\%c`))
	return forms
}

// Base64 returns the digits that stand for a value in base64, for each position at which the value can begin.
func Base64(value string) (forms []string) {
	for shift := range 3 { // base64 has a digit for each 6 bits, so three positions give different digits
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := encoding.EncodeToString([]byte(strings.Repeat("x", shift) + value))
			from, to := (8*shift+5)/6, (shift+len(value))*8/6 // the digits that depend only on the value
			forms = append(forms, text[from:to])
		}
	}
	return forms
}

func percent(value, format, kept string) string {
	return escaped(value, func(c byte) bool { return !plain(c) && strings.IndexByte(kept, c) < 0 }, format)
}

// plain reports whether a byte is a letter or digit, which nothing escapes.
func plain(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// escaped formats the bytes for which special returns true, and copies the others.
func escaped(value string, special func(byte) bool, format string) string {
	var b strings.Builder
	for _, c := range []byte(value) {
		if special(c) {
			fmt.Fprintf(&b, format, c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
