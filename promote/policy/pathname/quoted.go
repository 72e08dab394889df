package pathname

import "strconv"

// escapes are C's escape letters and their bytes.
var escapes = map[byte]byte{'a': '\a', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v', '\\': '\\', '"': '"'}

// Unquote reads a quoted text at the beginning of a line, as git's unquote_c_style does.
func Unquote(line string) (text, rest string, ok bool) {
	if line == "" || line[0] != '"' {
		return "", "", false
	}
	var out []byte
	for i := 1; i < len(line); i++ {
		switch c := line[i]; {
		case c == '"':
			return string(out), line[i+1:], true
		case c != '\\':
			out = append(out, c)
		case i+1 == len(line):
			return "", "", false
		case escapes[line[i+1]] != 0:
			i++
			out = append(out, escapes[line[i]])
		default:
			octal, err := strconv.ParseUint(line[i+1:min(i+4, len(line))], 8, 8)
			if err != nil || i+4 > len(line) {
				return "", "", false
			}
			out = append(out, byte(octal))
			i += 3
		}
	}
	return "", "", false
}
