package gitops

import "unicode/utf8"

// ToText gives a name of a ref or a path, which is any bytes but NUL, a form that JSON keeps: valid UTF-8 is its own, any other
// name follows a NUL, byte by byte, as the characters with these numbers.
func ToText(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	text := []rune{0}
	for _, b := range []byte(name) {
		text = append(text, rune(b))
	}
	return string(text)
}

// FromText returns the name of which ToText made a text.
func FromText(text string) string {
	if text == "" || text[0] != 0 {
		return text
	}
	var name []byte
	for _, char := range text[1:] {
		name = append(name, byte(char))
	}
	return string(name)
}

// AnyName is a name that is kept as JSON.
type AnyName string

// MarshalText implements [encoding.TextMarshaler].
func (n AnyName) MarshalText() ([]byte, error) { return []byte(ToText(string(n))), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (n *AnyName) UnmarshalText(text []byte) error {
	*n = AnyName(FromText(string(text)))
	return nil
}
