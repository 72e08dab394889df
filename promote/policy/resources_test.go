package policy

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mailmapOf returns a .mailmap file with a number of addresses, in reverse order.
func mailmapOf(addresses int) string {
	var text strings.Builder
	for i := addresses; i > 0; i-- {
		fmt.Fprintf(&text, "A <%07x@b>\n", i)
	}
	return text.String()
}

// macroChain returns definitions of macros, each of which uses the next one.
func macroChain(length int) string {
	var text strings.Builder
	for i := range length {
		fmt.Fprintf(&text, "[attr]m%d m%d\n", i, i+1)
	}
	return text.String() + "* m0\n"
}

// namesIn returns attribute files in folders from a number to another, each with n attributes of its own.
func namesIn(from, to, n int) files {
	all := files{}
	for i := from; i < to; i++ {
		text := "*"
		for j := range n {
			text += fmt.Sprintf(" a%d.%d", i, j)
		}
		all[fmt.Sprintf("d%03d/.gitattributes", i)] = text + "\n"
	}
	return all
}

// resourceCases are the cases of the rule git-resources.
var resourceCases = []ruleCase{
	{name: "a long marker", change: files{".gitattributes": "* conflict-marker-size=1431655765\n"}, want: "hold", path: ".gitattributes"},
	{name: "below", change: files{"src/.gitattributes": "*.c text conflict-marker-size=101 -diff\r\n"}, want: "hold", path: "src/.gitattributes"},
	{name: "quoted", change: files{".gitattributes": `"\052" conflict-marker-size=+0000500x` + "\n"}, want: "hold", path: ".gitattributes"},
	{name: "a number that becomes another one", change: files{".gitattributes": "* conflict-marker-size=-3000000000\n"}, want: "hold", path: ".gitattributes"},
	{name: "a macro", change: files{".gitattributes": "[attr]m conflict-marker-size=500\n"}, want: "hold", path: ".gitattributes"},
	{name: "by a macro", before: files{".gitattributes": "[attr]n conflict-marker-size=500\n[attr]m n\n"}, change: files{"src/.gitattributes": "* m\n"}, want: "hold", path: "src/.gitattributes"},
	{name: "another name of the file", change: files{"a/.GitAttributes": "* conflict-marker-size=500\n"}, want: "hold", path: "a/.GitAttributes"},
	{name: "through a link", before: files{".gitattributes": linkTo + "x"}, change: files{"x": "* conflict-marker-size=500\n"}, want: "hold", path: "x"},
	{name: "moved", before: files{"x": "* conflict-marker-size=500\n"}, change: files{"x": "", ".gitattributes": "* conflict-marker-size=500\n"}, want: "hold", path: ".gitattributes"},
	{name: "a chain of macros", change: files{".gitattributes": macroChain(10_000)}, want: "hold", path: ".gitattributes"},
	{name: "many attributes", change: files{"d/.gitattributes": strings.ReplaceAll(macroChain(201), "[attr]", "* ")}, want: "hold", path: "d/.gitattributes"},
	{name: "many files of attributes", change: namesIn(0, 30, 200), want: "hold", path: "d010/.gitattributes"},
	{name: "many files of attributes that are there", before: namesIn(0, 9, 200), change: namesIn(9, 11, 200), want: "hold", path: "d010/.gitattributes"},
	{name: "some files of attributes", change: namesIn(0, 10, 200)},
	{name: "some files of attributes that are there", before: namesIn(0, 8, 200), change: namesIn(8, 10, 200)},
	{name: "a few attributes more", before: namesIn(0, 30, 200), change: namesIn(30, 31, 200)},
	{name: "fewer attributes", before: namesIn(0, 30, 200), change: namesIn(0, 30, 190)},
	{name: "the same attributes in many files", change: beside(300, ".gitattributes", "*.c"+strings.Repeat(" text diff=c", 5)+"\n")},
	{name: "a mailmap", change: files{".mailmap": mailmapOf(20_001)}, want: "hold", path: ".mailmap"},
	{name: "a mailmap in one line", change: files{".MailMap": strings.Repeat("<a>", 20_001)}, want: "hold", path: ".MailMap"},
	{name: "a mailmap of many bytes", change: files{".mailmap": strings.Repeat("#\n", textLimit/2)}, want: "hold", path: ".mailmap"},
	{name: "a mailmap through a link", before: files{".mailmap": linkTo + "x"}, change: files{"x": mailmapOf(20_001)}, want: "hold", path: "x"},
	{name: "a mailmap in another encoding", change: files{".mailmap": "x\n", ".gitattributes": ".mailmap working-tree-encoding=UTF-16\n"}, want: "hold", path: ".mailmap"},
	{name: "a mailmap is shortened", before: files{".mailmap": mailmapOf(20_002)}, change: files{".mailmap": mailmapOf(20_001)}},
	{name: "usual", change: files{".gitattributes": "* text conflict-marker-size=100\n*.rst conflict-marker-size=32\n*.x -conflict-marker-size=500 !conflict-marker-size conflict-marker-size\n", ".mailmap": mailmapOf(2000)}},
	{name: "was so", before: files{".gitattributes": "* conflict-marker-size=500\n"}, change: files{".gitattributes": "* conflict-marker-size=500\n*.x text\n"}},
	{name: "another file", change: files{"a/.mailmap": mailmapOf(20_001), "attributes": "* conflict-marker-size=500\n"}},
}

// atoi converts a value as atoi(3) of the C library does: it reads a long, and keeps its lower half.
func atoi(value string) int32 {
	value = strings.TrimLeft(value, "\v\f")
	end := len(value)
	for i, c := range value {
		if (c < '0' || c > '9') && (i > 0 || c != '+' && c != '-') {
			end = i
			break
		}
	}
	long, _ := strconv.ParseInt(value[:end], 10, 64) // out of range: the nearest long, as strtol(3)
	return int32(long)
}

// TestConflictMarkersAgainstGit writes random attribute files. If git gives a path of the new tree a marker size above the limit, the gate
// must hold the commit.
func TestConflictMarkersAgainstGit(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := attributeGrammar{rand.New(rand.NewPCG(seed, 2))}
	top := t.TempDir()
	check(t, exec.Command("git", "init", "-q", top).Run())
	check(t, os.Mkdir(filepath.Join(top, "d"), 0o700))
	rounds, long, held := 1000, 0, 0
	if testing.Short() {
		rounds = 200
	}
	names := []string{"filter", "merge", "a.b", "A-_9"}
	sized := func(text string) string {
		for _, name := range names {
			for strings.Contains(text, name) {
				text = strings.Replace(text, name, g.pick("conflict-marker-size", "-conflict-marker-size")+g.pick("", "=7", "=99", "=101", "=+200", "=-200", "=\v300", "=0x300", "=4294967796",
					"=-3000000000", "=99999999999999999999", "=0000000000000500", "=1431655765", "=1e9", "=", "=x"), 1)
			}
		}
		return text
	}
	small := func(text string) string { return strings.ReplaceAll(text, "filter", "conflict-marker-size") }
	for range rounds {
		before := files{".gitattributes": small(g.file()), "d/.gitattributes": small(g.file())}
		after := before.with(files{g.pick(".gitattributes", "d/.gitattributes"): sized(g.file())})
		if g.IntN(3) == 0 {
			after[".gitattributes"] = sized(g.file())
		}
		for name, content := range after {
			check(t, os.WriteFile(filepath.Join(top, name), []byte(content), 0o600))
		}
		git := exec.Command("git", "check-attr", "-z", "--stdin", "conflict-marker-size")
		git.Dir, git.Stdin = top, strings.NewReader(strings.Join(attributePaths, "\x00")+"\x00")
		git.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1", "XDG_CONFIG_HOME="+top)
		out, err := git.Output()
		check(t, err)
		sizes := map[string]int32{}
		for fields := strings.Split(string(out), "\x00"); len(fields) > 3; fields = fields[3:] {
			if n := atoi(fields[2]); n > 100 {
				sizes[fields[0]] = n
			}
		}
		s := newStore()
		found, err := New(Settings{}, testFacts, s).Check(t.Context(), s.commit(before, after, "x\n"))
		check(t, err)
		holds := slices.ContainsFunc(found, func(f Finding) bool { return f.Rule == "git-resources" && f.Action == Hold })
		if holds {
			held++
		}
		if len(sizes) > 0 {
			if long++; !holds {
				t.Fatalf("git says %v for %q, and the gate holds nothing (before %q)", sizes, after, before)
			}
		}
	}
	t.Logf("%d commits, %d with long markers, %d held", rounds, long, held)
	if long < rounds/100 { // nine in a hundred on average
		t.Errorf("only %d commits had long markers", long)
	}
}
