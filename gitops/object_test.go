package gitops

import (
	"bytes"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/quick"
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
		"no tree":              "author A <a@x> 1 +0000\ncommitter C <c@x> 2 +0000\n\nm",
		"no author":            "tree " + string(someTree) + "\ncommitter C <c@x> 2 +0000\n\nm",
		"no committer":         "tree " + string(someTree) + "\nauthor A <a@x> 1 +0000\n\nm",
		"empty":                "",
		"capitals in the tree": "tree " + strings.ToUpper(string(someTree)) + "\nauthor A <a@x> 1 +0000\ncommitter C <c@x> 2 +0000\n\nm",
		"capitals in a parent": "tree " + string(someTree) + "\nparent " + strings.ToUpper(string(someTree)) + "\nauthor A <a@x> 1 +0000\ncommitter C <c@x> 2 +0000\n\nm",
		"in message":           "\n\ntree " + string(someTree) + "\nauthor A <a@x> 1 +0000\ncommitter C <c@x> 2 +0000\n",
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
	head := "tree " + string(someTree) + "\nparent " + string(someTree) + "\nauthor A <a@x> 1 +0000\ncommitter C <c@x> 2 +0000\nencoding latin1\n"
	c, err := ParseCommit([]byte(head + "tree 0000\nparent q\nauthor Evil <e@x> 9 +0000\ncommitter Evil <e@x> 9 +0000\nencoding utf-7\n\nm\n"))
	if err != nil || string(c.Bytes()) != head+"\nm\n" {
		t.Errorf("got %q, %v; want %q", c.Bytes(), err, head+"\nm\n")
	}
}

// Whatever parses is written so that it parses to the same, and never to more than was there. All object names in it are such as the host's
// files can hold.
func FuzzParseCommit(f *testing.F) {
	f.Add([]byte("tree " + someTree + "\nauthor A <a@x> 1 +0000\ncommitter C <c@x> 2 +0000\n\nm\n"))
	f.Add([]byte("tree " + someTree + "\nparent " + someTree + "\nparent " + someTree + "\nauthor A\ncommitter C\nencoding e\n\n\n\n"))
	f.Add([]byte("tree " + someTree + "\nauthor A\ncommitter C\ngpgsig a\n b\n\nm"))
	f.Add([]byte("tree " + someTree + "\nparent " + OID(strings.ToUpper(string(someTree))) + "\nauthor A\ncommitter C\n\nm"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := ParseCommit(raw)
		if err != nil {
			return
		}
		for _, id := range append(c.Parents, c.Tree) {
			if _, err := ParseOID(string(id)); err != nil {
				t.Errorf("%q parses, but %v", raw, err)
			}
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
		var read OID
		if err := read.UnmarshalText([]byte(text)); (err == nil) != (good || text == "") || err == nil && string(read) != text {
			t.Errorf("in a file %q: %q, %v", text, read, err)
		}
	}
}

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
		if err != nil {
			t.Fatal(err)
		}
		kept = append(append(kept, c.Tree), c.Parents...)
	}
	if after := held(); after > before+(16<<20) {
		t.Errorf("%d names hold %d MB", len(kept), (after-before)>>20)
	}
	runtime.KeepAlive(kept)
}

// TestSet checks that a set has the values that it was made of or that were added, and no others.
func TestSet(t *testing.T) {
	s := SetOf("a", "b", "a")
	s.Add("c", "b")
	s.Add()
	if want := map[string]bool{"a": true, "b": true, "c": true}; !maps.Equal(s, want) {
		t.Errorf("the set is %v, want %v", s, want)
	}
}
