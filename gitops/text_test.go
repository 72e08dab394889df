package gitops

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/git-airlock/git-airlock/words"
)

func TestNamesAreKeptAsJSON(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"refs/heads/main": `"refs/heads/main"`, "refs/heads/café": `"refs/heads/café"`, "": `""`, "\ufffd": `"�"`,
		"refs/heads/caf\xe9": `"\u0000refs/heads/café"`, "\xff\x80é": `"\u0000ÿ\u0080Ã©"`,
	} {
		text, err := json.Marshal(AnyName(name))
		if err != nil {
			t.Fatal(err)
		}
		var got AnyName
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if string(got) != name {
			t.Errorf("%q is read as %q", name, got)
		}
		var texts [2]string
		if err := json.Unmarshal(text, &texts[0]); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(want), &texts[1]); err != nil {
			t.Fatal(err)
		}
		if texts[0] != texts[1] {
			t.Errorf("%q is written as %s, want %s", name, text, want)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{"plain", "\x1b[31m", "a\u202eb", "\u200b", "\xff\xfe", "é\u0301", "\U000e0041", "\ufe0f", "\u3164", "\u00ad", "\r\n\t\x00", strings.Repeat("é", 3000)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		out := Text(text).String()
		if !utf8.ValidString(out) {
			t.Fatalf("%q gives %q: not UTF-8", text, out)
		}
		if len(out) > 6*escapeLimit+len("...") { // a control character becomes six bytes
			t.Errorf("%d bytes give %d", len(text), len(out))
		}
		for _, r := range out {
			if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Bidi_Control) {
				t.Fatalf("%q gives %q with %U in it", text, out, r)
			}
		}
	})
}

func TestText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain ü 漢 ❤\ufe0f":       "plain ü 漢 ❤\ufe0f",
		"\x1b]0;x\a":              `\u001b]0;x\u0007`,
		"a\nb\tc\r":               `a\nb\tc\u000d`,
		"\xff":                    `\xff`,
		"\u202e\u2066\u200b":      `\u202e\u2066\u200b`,
		"\u3164\u115f\u034f":      `\u3164\u115f\u034f`,
		"\U000e0041\U000e0100":    `\U000e0041\U000e0100`,
		"README\ufe0e\ufe0f":      `README\ufe0e\ufe0f`,
		"❤\ufe0f\ufe0f\xff\ufe0e": "❤\ufe0f" + `\ufe0f\xff\ufe0e`,
		"1\ufe0f\u20e3‼\ufe0f":    "1\ufe0f\u20e3‼\ufe0f",
		"\u0085\u2028":            `\u0085\u2028`,
		strings.Repeat("x", 5000): strings.Repeat("x", escapeLimit) + "...",
	} {
		if got := Text(text).String(); got != want {
			t.Errorf("%.40q: %.200q, want %.200q", text, got, want)
		}
	}
}

func TestQuotedWordsThroughTheShell(t *testing.T) {
	t.Parallel()
	samples := []string{"", "plain", "a b", "it's", "$HOME", "`id`", "\\", "a\nb", "*", "~", "#x", "-n", "ü", "\xff", "!!", "''", "a\"b", ";", "&", "|", "=x",
		"{a,b}", "\t", "\x01", "%s%%\x1b", "\x1b7", "\\033\x1b", "\u202egnp", "it's\x7f", "README\ufe0e\ufe0f", "❤\ufe0f it's"}
	for n := range 255 {
		samples = append(samples, "x"+string([]byte{byte(n + 1)})+"y")
	}
	for name, quote := range map[string]func(string) string{"ShellQuote": words.ShellQuote, "Pasteable": Pasteable[string]} {
		t.Run(name, func(t *testing.T) { throughTheShell(t, samples, quote) })
	}
	throughTheShell(t, []string{"\n", "a\nb\n"}, words.ShellQuote)
}

func TestPasteableShowsAll(t *testing.T) {
	t.Parallel()
	for _, w := range []string{"a\x1b[2J", "\u202e", "\xff", "a\nb", "a\n", "\u200b", "\x7f", "README\ufe0f"} {
		if got := Pasteable(w); !Text(got).Plain() {
			t.Errorf("%q is shown as %q", w, got)
		}
	}
	// A pattern finds the file whose name ends in newlines.
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a\n\n"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", "rm "+Pasteable("a\n\n"))
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func throughTheShell(t *testing.T, words []string, quote func(string) string) {
	t.Helper()
	var script strings.Builder
	for _, w := range words {
		fmt.Fprintf(&script, "printf '%%s\\0' %s\n", quote(w))
	}
	cmd := exec.Command("sh")
	cmd.Stdin = strings.NewReader(script.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); !slices.Equal(got, words) {
		for i := range min(len(got), len(words)) {
			if got[i] != words[i] {
				t.Fatalf("%q came back as %q", words[i], got[i])
			}
		}
		t.Fatalf("%d words came back, want %d", len(got), len(words))
	}
}

// Names that are kept of a commit must not keep the megabyte of its headers.

// TestTextIsEscapedByEveryVerb formats a text in each way in which code shows one.
func TestTextIsEscapedByEveryVerb(t *testing.T) {
	t.Parallel()
	hostile := Text("a\x1b[2J")
	list := struct {
		Name Text
		List []Text
	}{hostile, []Text{hostile}}
	inJSON, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{hostile.String(), fmt.Sprint(hostile), fmt.Sprintf("%s %v %q %+v %x %.3s %d", hostile, hostile, hostile, hostile, hostile, hostile, hostile),
		fmt.Sprintf("%v %+v %#v", list, list, list), fmt.Errorf("%w", fmt.Errorf("read %s", hostile)).Error(), string(inJSON)} {
		if strings.Contains(shown, "\x1b") || strings.Contains(shown, "u001b[") && !strings.Contains(shown, `\u001b[`) {
			t.Errorf("%q is shown as %q", hostile.Raw(), shown)
		}
	}
	if got, want := fmt.Sprintf("%q", hostile), `"a\\u001b[2J"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
