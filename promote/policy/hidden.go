package policy

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/git-airlock/git-airlock/gitops"
)

// hiddenText looks for what keeps people from reading what there is: characters that turn the direction of text or do not
// show, and attributes that have git show no diff of it.
type hiddenText struct{}

func (hiddenText) describe() Description {
	return documented("hidden-text", Flag, "invisible characters, or ones that turn the direction of text, in an added line, a name or the message; a message in an uncommon encoding; attributes that hide the diff of text; a .mailmap")
}

func (hiddenText) change(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	if c.New.Mode != 0 && c.Old.Mode == 0 {
		if _, char := findHidden([]byte(c.Path), true); char != "" {
			r.at(c.Path, "the name has %s", char)
		}
	}
	if c.New.Mode != 0 && means(base(c.Path), ".gitattributes") {
		if err := diffless(ctx, in, c, r); err != nil {
			return err
		}
	}
	if c.New.Mode != 0 && means(c.Path, ".mailmap") {
		r.at(c.Path, "git shows other names and addresses by it")
	}
	f, err := in.read(ctx, c)
	if err != nil || f.binary {
		return err
	}
	for _, added := range f.runs {
		text := added.text
		if added.line == 1 {
			text = bytes.TrimPrefix(text, byteOrderMark) // it says only that this is UTF-8
		}
		if line, char := findHidden(text, false); char != "" {
			r.at(c.Path, "line %d has %s", added.line+line, char)
			return nil
		}
	}
	return nil
}

// plainEncodings are those in which the bytes of a message show what is hidden in it.
var plainEncodings = []string{"", "utf-8", "utf8", "ascii", "us-ascii"}

// latinEncodings have a character for each byte. The values tell whether most from 0x80 to 0x9f are letters and not control
// characters, as Windows has it.
var latinEncodings = map[string]bool{"iso-8859-1": false, "iso8859-1": false, "latin1": false, "latin-1": false, "iso-8859-15": false, "windows-1252": true, "cp1252": true}

func (hiddenText) commit(_ context.Context, in *inspection, r *report) error {
	encoding := strings.ToLower(in.Encoding)
	windows, latin := latinEncodings[encoding]
	if !latin && !slices.Contains(plainEncodings, encoding) {
		r.at("", "the message says that it is in %s, and may show other characters than were looked at", gitops.Escape(in.Encoding))
	}
	line, char := findHidden(in.Message, true)
	if char == "" && latin { // git shows the bytes where it cannot convert them, which is why both are looked at
		line, char = findHidden(fromLatin(in.Message, windows), true)
	}
	if char != "" {
		r.at("", "line %d of the message has %s", line+1, char)
	}
	return nil
}

// fromLatin turns bytes into characters one by one. Those that differ between the Latin encodings can be seen in all of them:
// any letter stands for those of Windows. Of what that has no letter for, some make control characters.
func fromLatin(text []byte, windows bool) []byte {
	var out []byte
	for _, b := range text {
		r := rune(b)
		if windows && b >= 0x80 && b <= 0x9f && strings.IndexByte("\x81\x8d\x8f\x90\x9d", b) < 0 {
			r = '\u20ac'
		}
		out = utf8.AppendRune(out, r)
	}
	return out
}

// findHidden returns the first hidden character of a text, named, and the number of lines before it. Control
// characters count if controls says so: in files they are too common to tell anything.
func findHidden(text []byte, controls bool) (line int, char string) {
	before := rune(0)
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		switch {
		case r == '\n':
			line++
		case r < utf8.RuneSelf && (!controls || r >= ' ' && r != 0x7f || r == '\t' || r == '\r'):
		case r == utf8.RuneError && n <= 1:
		case unicode.Is(unicode.Cc, r) && !controls || unicode.Is(unicode.Co, r): // Co: the icons of fonts
		case gitops.Hidden(r) && !wanted(before, r, text[i+n:]):
			return line, fmt.Sprintf("U+%04X", r)
		}
		before = r
		i += n
	}
	return 0, ""
}

// wanted reports whether a hidden character is part of how its neighbours are written.
func wanted(before, r rune, after []byte) bool {
	switch {
	case '\u200b' <= r && r <= '\u200d' || r == '\u034f': // joiners, and where words end that no space divides
		next, _ := utf8.DecodeRune(after)
		return joined(before) || joined(next)
	case r == '\u200e' || r == '\u200f' || r == '\u061c': // marks of direction
		next, _ := utf8.DecodeRune(after)
		return rightToLeft(before) || rightToLeft(next)
	case unicode.Is(unicode.Variation_Selector, r):
		return joined(before)
	case '\U000e0020' <= r && r <= '\U000e007f': // a flag, spelled
		return before == '\U0001f3f4' || '\U000e0020' <= before && before <= '\U000e007f'
	}
	return false
}

// joined reports whether a character is of a script whose letters are joined, or an emoji. The scripts that
// programs are written in are not.
func joined(r rune) bool {
	if unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic) {
		return false
	}
	return r >= utf8.RuneSelf && r != utf8.RuneError && (unicode.In(r, unicode.L, unicode.M, unicode.So, unicode.Sk, unicode.Sm) || r == '\uFE0F')
}

func rightToLeft(r rune) bool {
	return unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Adlam)
}
