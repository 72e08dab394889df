package recipe

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/git-airlock/git-airlock/gitops/bounded"
)

// TestLinesGrowth counts the bytes that finding lines allocates: a document of twice the size must need at most twice
// as much.
func TestLinesGrowth(t *testing.T) {
	built := func(n int) int {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "%sk%d = 1\n", strings.Repeat("a.", 16), i)
		}
		content := []byte(text.String())
		if err := (bounded.Limits{Bytes: len(content), Depth: 32, Keys: 1 << 20}).TOML(content); err != nil {
			t.Fatal(err)
		}
		bytes := 0
		for path := range findLines(content) {
			bytes += len(path)
		}
		return bytes
	}
	if one, two := built(500), built(1000); two > 2*one+1000 {
		t.Errorf("%d bytes for 500 keys, %d for 1000", one, two)
	}
}

func TestTooMuch(t *testing.T) {
	deep := strings.Repeat("a.", 40_000) + "a = 1\n"
	for name, c := range map[string]struct {
		err  func() error
		want string
	}{
		"a dotted key":    {func() error { _, err := Parse([]byte("\n" + deep)); return err }, "coding-environment.toml:2: more than 32 levels of nesting"},
		"many keys":       {func() error { _, err := Parse([]byte(strings.Repeat("a=1\n", 6000))); return err }, "more than 5000 keys"},
		"a devcontainer":  {func() error { _, _, err := ParseDevcontainer([]byte(strings.Repeat("[", 9000))); return err }, "more than 32 levels of nesting"},
		"paths to copy":   {func() error { return CheckDockerfile("D", []byte("COPY "+strings.Repeat("a ", 3000)+" /\n")) }, "D: more than 1000 paths to copy"},
		"stages":          {func() error { return CheckDockerfile("D", []byte(strings.Repeat("FROM a\n", 1001))) }, "D: more than 1000 stages"},
		"a usual file":    {func() error { return CheckDockerfile("D", []byte("FROM a\nCOPY . /x\n")) }, ""},
		"a usual context": {func() error { _, err := ParseIgnored("i", []byte("*\n!a\n")); return err }, ""},
	} {
		if err := c.err(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// FuzzSourcesOf looks for a Dockerfile that passes the check but names more sources or stages than it allows.
func FuzzSourcesOf(f *testing.F) {
	f.Add([]byte("FROM a AS b\nCOPY --from=b x /\nADD [\"a b\", \"/\"]\ncopy a \\\n b /\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		if CheckDockerfile("D", content) != nil {
			return
		}
		if s := SourcesOf(content); len(s) > 2*maxSources {
			t.Errorf("%d sources", len(s))
		}
		if b := BasesOf(content); len(b) > maxStages {
			t.Errorf("%d bases", len(b))
		}
	})
}

// FuzzBounded looks for a document of tools that is read although it exceeds the limits: the limits on its keys bound
// the result of [Detect].
func FuzzBounded(f *testing.F) {
	f.Add("[tools]\ngo = \"1.2.3\"\n\"core:node\" = [\"1\"]\n", "go 1.2.3\n", "[os]\npackages = [\"a\"]")
	f.Fuzz(func(t *testing.T, mise, tools, text string) {
		files := fstest.MapFS{}
		for name, text := range map[string]string{"mise.toml": mise, ".tool-versions": tools, "package.json": mise, "go.mod": tools} {
			files[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if found := Detect(files); len(found) > 2*bounded.Usual.Keys+strings.Count(tools, "\n")+10 {
			t.Errorf("%d languages", len(found))
		}
		lines := findLines([]byte(text))
		if bounded.Usual.TOML([]byte(text)) == nil && len(lines) > 2*bounded.Usual.Keys {
			t.Errorf("%d lines", len(lines))
		}
	})
}
