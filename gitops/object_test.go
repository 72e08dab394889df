package gitops

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/quick"
	"unicode"
	"unicode/utf8"
)

const someTree = OID("4b825dc642cb6eb9a060e54bf8d69288fbee4904")

func TestCommitRoundTrip(t *testing.T) {
	t.Parallel()
	property := func(parents uint8, name, encoding string, message []byte) bool {
		plain := strings.NewReplacer("\n", "", "\x00", "", " ", "")
		c := Commit{Tree: someTree, Author: "A" + plain.Replace(name) + " <a@x> 1 +0000", Committer: "C <c@x> 2 -0130",
			Encoding: plain.Replace(encoding), Message: message}
		for range parents % 5 {
			c.Parents = append(c.Parents, someTree)
		}
		back, err := ParseCommit(c.Bytes())
		return err == nil && back.Tree == c.Tree && slices.Equal(back.Parents, c.Parents) && back.Author == c.Author &&
			back.Committer == c.Committer && back.Encoding == c.Encoding && bytes.Equal(back.Message, c.Message)
	}
	if err := quick.Check(property, nil); err != nil {
		t.Error(err)
	}
}

func TestParseCommitLeavesHeadersBehind(t *testing.T) {
	t.Parallel()
	head := "tree " + string(someTree) + "\nparent " + string(someTree) + "\nauthor A <a@x> 1 +0000\ncommitter C <c@x> 2 +0000\n"
	signed := head + "gpgsig -----BEGIN-----\n author Evil <e@x> 9 +0000\n tree 0\n \n -----END-----\nmergetag object x\n type commit\n committer Evil <e@x> 9 +0000\nencoding latin1\nunknown x\n\nmessage\n\nauthor Evil <e@x> 9 +0000\n"
	c, err := ParseCommit([]byte(signed))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(c.Bytes()), head+"encoding latin1\n\nmessage\n\nauthor Evil <e@x> 9 +0000\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for name, content := range map[string]string{
		"no tree":      "author A <a@x> 1 +0000\ncommitter C <c@x> 2 +0000\n\nm",
		"no author":    "tree " + string(someTree) + "\ncommitter C <c@x> 2 +0000\n\nm",
		"no committer": "tree " + string(someTree) + "\nauthor A <a@x> 1 +0000\n\nm",
		"empty":        "",
		"in message":   "\n\ntree " + string(someTree) + "\nauthor A <a@x> 1 +0000\ncommitter C <c@x> 2 +0000\n",
	} {
		if _, err := ParseCommit([]byte(content)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if c, err := ParseCommit([]byte(head)); err != nil || len(c.Message) != 0 {
		t.Errorf("headers alone: %q, %v", c.Message, err)
	}
}

// git index-pack --strict looks at no header after the committer: one of a name that was there already is nothing to
// git, and must be nothing to us.
func TestParseCommitTakesTheFirstHeader(t *testing.T) {
	t.Parallel()
	head := "tree " + string(someTree) + "\nparent p\nauthor A <a@x> 1 +0000\ncommitter C <c@x> 2 +0000\nencoding latin1\n"
	c, err := ParseCommit([]byte(head + "tree 0000\nparent q\nauthor Evil <e@x> 9 +0000\ncommitter Evil <e@x> 9 +0000\nencoding utf-7\n\nm\n"))
	if err != nil || string(c.Bytes()) != head+"\nm\n" {
		t.Errorf("got %q, %v; want %q", c.Bytes(), err, head+"\nm\n")
	}
}

// Whatever parses is written so that it parses to the same, and never to more than was there.
func FuzzParseCommit(f *testing.F) {
	f.Add([]byte("tree " + someTree + "\nauthor A <a@x> 1 +0000\ncommitter C <c@x> 2 +0000\n\nm\n"))
	f.Add([]byte("tree t\nparent p\nparent q\nauthor A\ncommitter C\nencoding e\n\n\n\n"))
	f.Add([]byte("tree t\nauthor A\ncommitter C\ngpgsig a\n b\n\nm"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := ParseCommit(raw)
		if err != nil {
			return
		}
		written := c.Bytes()
		back, err := ParseCommit(written)
		if err != nil {
			t.Fatalf("%q parses, and %q does not: %v", raw, written, err)
		}
		if !bytes.Equal(back.Bytes(), written) {
			t.Errorf("%q becomes %q", written, back.Bytes())
		}
		if !bytes.HasSuffix(raw, c.Message) {
			t.Errorf("message %q is not the end of %q", c.Message, raw)
		}
	})
}

func TestSplitIdent(t *testing.T) {
	t.Parallel()
	for ident, want := range map[string][2]string{
		"A U Thor <a@x> 1700000000 +0130": {"A U Thor <a@x>", "1700000000 +0130"},
		" <> 0 +0000":                     {" <>", "0 +0000"},
		"A > B <a> 1 -0000":               {"A > B <a>", "1 -0000"},
		"A <a@x>":                         {"A <a@x>", ""},
		"":                                {"", ""},
	} {
		if who, when := SplitIdent(ident); who != want[0] || when != want[1] {
			t.Errorf("%q: %q, %q", ident, who, when)
		}
	}
}

func TestHashObjectIsGits(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		w := newWorld(t, "--object-format="+format)
		for _, content := range []string{"", "x", "\x00\xff\n", randomText(7, 100_000)} {
			if got, want := HashObject(format, "blob", []byte(content)), w.blob(content); got != want {
				t.Errorf("%s of %d bytes: %s, git says %s", format, len(content), got, want)
			}
		}
	}
}

func TestParseOID(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{
		strings.Repeat("a", 40): true, strings.Repeat("0", 64): true, strings.Repeat("a", 39): false, strings.Repeat("a", 41): false,
		strings.Repeat("A", 40): false, strings.Repeat("a", 40) + "\n": false, "": false, "HEAD": false, strings.Repeat("g", 40): false,
		" " + strings.Repeat("a", 39): false, "--upload-pack=x": false,
	} {
		if _, err := ParseOID(text); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A pack of ours is read by git to the very objects that were put in.
func TestPackOf(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		w := newWorld(t, "--object-format="+format)
		tree := OID(w.git("hash-object", "-t", "tree", "-w", "--stdin"))
		var objects []object
		for _, n := range []int{0, 1, 15, 16, 2047, 2048, 300_000} {
			objects = append(objects, object{"commit", Commit{Tree: tree, Author: "A <a@x> 1 +0000", Committer: "C <c@x> 2 +0000", Message: []byte(strings.Repeat("m", n))}.Bytes()})
		}
		for _, kind := range []string{"blob", "tree"} {
			objects = append(objects, object{kind, nil})
		}
		for _, few := range []bool{true, false} {
			check(t, w.storePack(t.Context(), bytes.NewReader(packOf(format, objects)), few))
			for _, o := range objects {
				if got := w.git("cat-file", o.kind, string(HashObject(format, o.kind, o.content))) + "\n"; strings.TrimSuffix(got, "\n") != strings.TrimSuffix(string(o.content), "\n") {
					t.Errorf("a %s of %d bytes came back as %d", o.kind, len(o.content), len(got))
				}
			}
		}
		w.git("fsck", "--strict", "--no-dangling")
	}
}

func FuzzEscape(f *testing.F) {
	for _, seed := range []string{"plain", "\x1b[31m", "a\u202eb", "\u200b", "\xff\xfe", "é\u0301", "\U000e0041", "\ufe0f", "\u3164", "\u00ad", "\r\n\t\x00", strings.Repeat("é", 3000)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		out := Escape(text)
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

func TestEscape(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain ü 漢 ❤\ufe0f":       "plain ü 漢 ❤\ufe0f",
		"\x1b]0;x\a":              `\u001b]0;x\u0007`,
		"a\nb\tc\r":               `a\nb\tc\u000d`,
		"\xff":                    `\xff`,
		"\u202e\u2066\u200b":      `\u202e\u2066\u200b`,
		"\u3164\u115f\u034f":      `\u3164\u115f\u034f`,
		"\U000e0041\U000e0100":    `\U000e0041\U000e0100`,
		"\u0085\u2028":            `\u0085\u2028`,
		strings.Repeat("x", 5000): strings.Repeat("x", escapeLimit) + "...",
	} {
		if got := Escape(text); got != want {
			t.Errorf("%.40q: %.200q, want %.200q", text, got, want)
		}
	}
}

func TestQuotedWordsThroughTheShell(t *testing.T) {
	t.Parallel()
	words := []string{"", "plain", "a b", "it's", "$HOME", "`id`", "\\", "a\nb", "*", "~", "#x", "-n", "ü", "\xff", "!!", "''", "a\"b", ";", "&", "|", "=x",
		"{a,b}", "\t", "\x01", "%s%%\x1b", "\x1b7", "\\033\x1b", "\u202egnp", "it's\x7f"}
	for n := range 255 {
		words = append(words, "x"+string([]byte{byte(n + 1)})+"y")
	}
	for name, quote := range map[string]func(string) string{"ShellQuote": ShellQuote, "Pasteable": Pasteable} {
		t.Run(name, func(t *testing.T) { throughTheShell(t, words, quote) })
	}
	throughTheShell(t, []string{"\n", "a\nb\n"}, ShellQuote)
}

func TestPasteableShowsAll(t *testing.T) {
	t.Parallel()
	for _, w := range []string{"a\x1b[2J", "\u202e", "\xff", "a\nb", "a\n", "\u200b", "\x7f"} {
		if got := Pasteable(w); Escape(got) != got {
			t.Errorf("%q is shown as %q", w, got)
		}
	}
	// A pattern finds the file whose name ends in newlines.
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "a\n\n"), nil, 0o644))
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
func TestParseCommitKeepsNoHeaders(t *testing.T) {
	raw := []byte("tree " + strings.Repeat("a", 40) + "\nparent " + strings.Repeat("b", 40) + "\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\nx " +
		strings.Repeat("x", 1<<20) + "\n\nmessage\n")
	held := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := held()
	var kept []OID
	for range 64 {
		c, err := ParseCommit(raw)
		check(t, err)
		kept = append(append(kept, c.Tree), c.Parents...)
	}
	if after := held(); after > before+(16<<20) {
		t.Errorf("%d names hold %d MB", len(kept), (after-before)>>20)
	}
	runtime.KeepAlive(kept)
}
