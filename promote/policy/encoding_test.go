package policy

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy/hostgit"
)

// readFromDisk are files whose blobs a rule reads, or that a rule finds by name.
var readFromDisk = []string{".gitignore", ".gitattributes", "d/.gitattributes", "d/package.json", "d/.mcp.json", ".lfsconfig", "d/.envrc"}

// diskGrammar generates trees whose attributes make git convert files.
type diskGrammar struct{ attributeGrammar }

func (g diskGrammar) attributes() string {
	var text strings.Builder
	for range 1 + g.IntN(4) {
		text.WriteString(g.pick("*", "*", "*", "[.]*", "*.json", ".gitignore", "/.gitignore", ".GITIGNORE", "d/*", "**/package.json", ".git*", "package.json", "*.rc", ".envrc",
			"d/", "\"\\056gitignore\"", "[attr]m1", "[attr]m2"))
		for range 1 + g.IntN(2) {
			text.WriteString(" " + g.pick("working-tree-encoding="+g.encoding(), "working-tree-encoding="+g.encoding(), "working-tree-encoding="+g.encoding(), "!working-tree-encoding", "-working-tree-encoding",
				"ident", "-ident", "m1", "-m1", "m2", "text", "eol=crlf"))
		}
		text.WriteString("\n")
	}
	return text.String() + g.pick("", "", "", "", "\x00\n* text\n")
}

func (g diskGrammar) encoding() string {
	return g.pick("UTF-8", "utf8", "", "UTF-16", "UTF-16LE", "UTF-16BE", "UTF-16LE-BOM", "UTF-32", "UTF-7", "Shift_JIS", "EUC-JP", "BIG5", "GBK", "GB18030", "ISO-2022-JP", "CP1258", "IBM1047",
		"ISO-8859-1", "KOI8-R", "none")
}

func (g diskGrammar) content() string {
	var text strings.Builder
	for range 1 + g.IntN(4) {
		text.WriteString(g.pick("# text", "\u00a5", "\u2f21", "\u6f22", "$Id$", "\u1ea1", "\u00e9", "+A", "\n"))
	}
	return text.String() + "\n"
}

// tree changes some files of a tree.
func (g diskGrammar) tree(from files) files {
	all := maps.Clone(from)
	for _, name := range readFromDisk {
		switch {
		case g.IntN(2) > 0:
		case strings.HasSuffix(name, ".gitattributes"):
			all[name] = g.attributes()
		default:
			all[name] = g.content()
		}
	}
	return all
}

// checkout has git write a tree to an empty work tree, and returns the files that differ from their blobs in ASCII.
func checkout(t *testing.T, top string, tree files, folded bool) map[string]bool {
	t.Helper()
	entries, err := os.ReadDir(top)
	check(t, err)
	for _, e := range entries {
		if e.Name() != ".git" {
			check(t, os.RemoveAll(filepath.Join(top, e.Name())))
		}
	}
	git := func(input string, args ...string) string {
		c := exec.Command("git", append([]string{"-c", fmt.Sprint("core.ignoreCase=", folded)}, args...)...)
		c.Dir, c.Stdin = top, strings.NewReader(input)
		out, err := c.Output()
		check(t, err)
		return strings.TrimSpace(string(out))
	}
	stream := "reset refs/heads/x\ncommit refs/heads/x\ncommitter a <a@x> 1 +0000\ndata 0\n"
	for name, content := range tree {
		stream += fmt.Sprintf("M 644 inline %s\ndata %d\n%s\n", name, len(content), content)
	}
	git(stream, "fast-import", "--quiet", "--force")
	check(t, os.RemoveAll(filepath.Join(top, ".git/index")))
	git("", "read-tree", "-u", "--reset", "refs/heads/x")
	different := map[string]bool{}
	for name, content := range tree {
		disk, err := os.ReadFile(filepath.Join(top, name))
		check(t, err)
		different[name] = !bytes.Equal(ascii(disk), ascii([]byte(content)))
	}
	return different
}

// ascii returns the ASCII characters of a content without carriage returns, which git adds at the end of lines.
func ascii(content []byte) []byte {
	return slices.DeleteFunc(slices.Clone(content), func(c byte) bool { return c >= 0x80 || c == '\r' })
}

// TestConvertedFilesAgainstGit checks out random trees with git, before and after a commit. If git writes other bytes of
// a file to the disk than its blob has, the gate must report the commit that makes it so, and each later change.
func TestConvertedFilesAgainstGit(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := diskGrammar{attributeGrammar{rand.New(rand.NewPCG(seed, 1))}}
	top := t.TempDir()
	check(t, exec.Command("git", "init", "-q", top).Run())
	users := filepath.Join(t.TempDir(), "attributes")
	rounds, converted, reported := 60, 0, 0
	if testing.Short() {
		rounds = 20
	}
	check(t, exec.Command("git", "-C", top, "config", "core.attributesFile", users).Run())
	for range rounds {
		own, info := g.pick("", "", "", g.attributes()), g.pick("", "", "", g.attributes())
		check(t, os.WriteFile(users, []byte(own), 0o600))
		check(t, os.WriteFile(filepath.Join(top, ".git/info/attributes"), []byte(info), 0o600))
		folded := g.IntN(2) == 0
		before := g.tree(files{"README": "x\n"})
		after := g.tree(before)
		was, is := checkout(t, top, before, folded), checkout(t, top, after, folded)
		s := newStore()
		facts := Facts{Workspace: ".devspace-7f3a", Top: top, Config: gitops.Config{"core.attributesfile": users}, Host: hostgit.Files{CommonDir: filepath.Join(top, ".git")}}
		found, err := New(Settings{}, facts, s).Check(t.Context(), s.commit(before, after, "x\n"))
		check(t, err)
		for name := range is {
			named := slices.ContainsFunc(found, func(f Finding) bool { return slices.Contains(f.Paths, name) })
			if named {
				reported++
			}
			if !is[name] || was[name] && before[name] == after[name] || !slices.Contains(readFromDisk, name) {
				continue
			}
			if converted++; !named {
				t.Errorf("%s is converted and not reported: before %q, after %q, user's %q, info %q, ignoreCase %t: %+v", name, before, after, own, info, folded, found)
			}
		}
	}
	t.Logf("%d commits, %d files converted, %d reported", rounds, converted, reported)
	if converted < rounds/6 {
		t.Errorf("git converted only %d files", converted)
	}
}
