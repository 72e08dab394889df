package policy

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestIdentIsGits has git convert texts with the attribute ident, by each of its two implementations. Each text in which one of them replaces
// something else than an object's name must be found, and no other text.
func TestIdentIsGits(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := attributeGrammar{rand.New(rand.NewPCG(seed, 3))}
	top := t.TempDir()
	git := func(input string, args ...string) string {
		c := exec.Command("git", append([]string{"-c", "core.attributesFile=" + filepath.Join(top, "attributes")}, args...)...)
		c.Dir, c.Stdin = top, strings.NewReader(input)
		out, err := c.Output()
		check(t, err)
		return string(out)
	}
	check(t, os.WriteFile(filepath.Join(top, "attributes"), []byte("a* ident\n"), 0o600))
	git("", "init", "-q")
	// A file with a NUL is flagged anyway, and git overlooks the mark after another "$" in one of the two.
	some := func(also ...string) (text string) {
		for range g.IntN(5) {
			text += g.pick(append(also, " ", " ", "x", "0a1b", "\r", "\t", "\v", "\xff", "é", "I", "d", ":")...)
		}
		return text
	}
	texts := map[string]string{}
	var paths, entries strings.Builder
	for n := range 3000 {
		name := fmt.Sprint("a", n)
		texts[name] = some() + "$" + g.pick("Id", "Id", "Id", "I", "id") + g.pick(":", ":", ":", "") + some() + g.pick("$", "$", "$", "\n$", "") + some("$")
		check(t, os.WriteFile(filepath.Join(top, name), []byte(texts[name]), 0o600))
		fmt.Fprintln(&paths, filepath.Join(top, name))
	}
	for n, id := range strings.Fields(git(paths.String(), "hash-object", "-w", "--no-filters", "--stdin-paths")) {
		fmt.Fprintf(&entries, "100644 %s 0\ta%d\n", id, n)
	}
	git(entries.String(), "update-index", "--index-info")
	git("", "checkout-index", "-a", "-f")
	names, replaced := regexp.MustCompile(`\$Id(: ?[0-9a-f]* ?)?\$`), 0
	archive := tar.NewReader(bytes.NewReader([]byte(git("", "archive", "--format=tar", strings.TrimSpace(git("", "write-tree"))))))
	for range texts {
		header, err := archive.Next()
		check(t, err)
		archived, err := io.ReadAll(archive)
		check(t, err)
		checkedOut, err := os.ReadFile(filepath.Join(top, header.Name))
		check(t, err)
		text := texts[header.Name]
		plain := func(text string) string { return names.ReplaceAllLiteralString(text, "$Id$") }
		differs := plain(text) != plain(string(archived)) || plain(text) != plain(string(checkedOut))
		if _, found := findIdentified([]byte(text)); differs != (found != "") {
			t.Errorf("%q is %q on the disk, and %q in an archive, found %q", text, checkedOut, archived, found)
		}
		if differs {
			replaced++
		}
	}
	if replaced < len(texts)/50 {
		t.Errorf("git replaced something in %d of %d texts", replaced, len(texts))
	}
}

// TestTextForIdentHidesNoOtherReport adds a harmless text for ident before a bidirectional character.
func TestTextForIdentHidesNoOtherReport(t *testing.T) {
	t.Parallel()
	s, kept := newStore(), strings.Repeat("x\n", 20)
	change := s.commit(testBase.with(files{"a.c": "1\n" + kept + "2\n"}), testBase.with(files{"a.c": "$Id: x$\n$Id: y$\n" + kept + "\u202e\n"}), "x\n")
	found, err := New(testSettings(t), testFacts, s).Check(t.Context(), change)
	check(t, err)
	want := "a.c: line 23 has U+202E; a.c: line 1 has  x between $Id: and $, which git replaces on the disk where the attribute ident is set"
	if len(found) != 1 || found[0].Detail != want {
		t.Errorf("%+v, want %s", found, want)
	}
}
