package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/manual"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/prison/prisontest"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// needPrograms skips a test if a program is missing, or fails it if CI requires the programs.
func needPrograms(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		_, err := exec.LookPath(name)
		if err != nil {
			from := map[string]string{"man": "man-db"}[name]
			err = fmt.Errorf("there is no %s (sudo apt-get install %s)", name, cmp.Or(from, name))
		}
		prisontest.Need(t, "shells", err)
	}
}

// TestManual checks that man and mandoc show each page without a warning.
func TestManual(t *testing.T) {
	needPrograms(t, "man", "mandoc")
	t.Setenv("SOURCE_DATE_EPOCH", "1750000000")
	for name, text := range manualOf(cmdline.ProgramPage(newProgram())).Pages() {
		for _, argv := range [][]string{
			{"man", "--warnings", "-E", "UTF-8", "-l", "-"},
			{"mandoc", "-Tlint", "-Wwarning"},
		} {
			cmd := exec.Command(argv[0], argv[1:]...)
			cmd.Env = append(os.Environ(), "MANWIDTH=80", "LC_ALL=C.UTF-8")
			cmd.Stdin = strings.NewReader(text)
			var shown, complaints bytes.Buffer
			cmd.Stdout, cmd.Stderr = &shown, &complaints
			err := cmd.Run()
			if argv[0] == "mandoc" {
				complaints.Write(shown.Bytes())
			} else if !strings.Contains(shown.String(), "SEE ALSO") {
				t.Errorf("%s: %s shows %q", name, argv[0], shown.String())
			}
			if err != nil || complaints.Len() > 0 {
				t.Errorf("%s: %s: %v: %s", name, argv[0], err, complaints.String())
			}
		}
	}
}

// TestManualIsComplete checks that each command has a page, and that each option and hold is explained.
func TestManualIsComplete(t *testing.T) {
	app := newProgram()
	pages := manualOf(cmdline.ProgramPage(app)).Pages()
	for _, c := range app.VisibleCommands() {
		page, ok := pages["git-airlock-"+c.Name+".1"]
		if c.Name == "help" {
			continue
		}
		if !ok || c.Usage == "" || c.UsageText == "" {
			t.Errorf("%s has no page, no usage or no synopsis", c.Name)
		}
		for _, f := range c.VisibleFlags() {
			for _, name := range f.Names() {
				if !strings.Contains(page, manual.Literal("-"+name)) {
					t.Errorf("the page of %s does not mention -%s", c.Name, name)
				}
			}
		}
		if !strings.Contains(pages["git-airlock.1"], manual.Literal("git-airlock-"+c.Name)) {
			t.Errorf("the first page does not mention %s", c.Name)
		}
	}
	for name, page := range pages { // programs such as apropos take all of NAME for the summary
		_, of, _ := strings.Cut(page, "\n.SH NAME\n")
		if of, _, _ = strings.Cut(of, "\n.SH "); of == "" || strings.Contains(of, "\n") {
			t.Errorf("the name of %s is %q", name, of)
		}
	}
	for _, reason := range ledger.Reasons {
		if manual.HoldReasons[string(reason)] == "" {
			t.Errorf("the hold %s is not explained", reason)
		}
	}
}

// TestSettingsAreExplained checks that the manual has every setting that the code reads.
func TestSettingsAreExplained(t *testing.T) {
	known := map[string]bool{}
	for _, s := range slices.Concat(manual.Settings, manual.GitSettings) {
		key := strings.ToLower(s.Key)
		known[key] = true
		known[strings.TrimRight(regexp.MustCompile(`[*<].*`).ReplaceAllString(key, ""), "")] = true
	}
	reads := regexp.MustCompile(`^(airlock|advice|color)\.[a-zA-Z.]+$`)
	for name, key := range literals(t, "../..") {
		if key = strings.ToLower(key); !reads.MatchString(key) || key == "color.ui" || key == "color.pager" || key == "color.advice" {
			continue
		}
		if !known[key] && !strings.HasPrefix(key, "airlock.limit.") {
			t.Errorf("%s: %s is not in the manual", name, key)
		}
	}
}

// TestPagesNameTheirSettings checks that pages have the settings of their options, also if their names differ, that each setting is on the page
// of a command, and that no page has a setting only because an option has the same name.
func TestPagesNameTheirSettings(t *testing.T) {
	program := cmdline.ProgramPage(newProgram())
	pages := manualOf(program).Pages()
	names := func(command, key string) bool {
		_, configuration, _ := strings.Cut(pages["git-airlock-"+command+".1"], ".SH CONFIGURATION\n")
		return strings.Contains(configuration, manual.Literal("airlock."+key)+`\fR`)
	}
	for _, s := range manual.Settings {
		key := strings.TrimPrefix(s.Key, "airlock.")
		if !slices.ContainsFunc(program.Commands, func(p manual.Page) bool { return names(p.CommandName(), key) }) {
			t.Errorf("no page of a command has %s", s.Key)
		}
	}
	for _, other := range [][2]string{{"review", "tool"}, {"share", "review"}, {"start", "sign"}, {"image", "sign"}, {"fix", "check"}} {
		if names(other[0], other[1]) {
			t.Errorf("the page of %s names airlock.%s, which is none of its own", other[0], other[1])
		}
	}
	for command, keys := range map[string][]string{
		"start": {"backend", "tool", "rootfs", "recipe", "buildNetwork", "selftest", "autoLand", "engine", "allowSecrets"},
		"run":   {"recipe", "buildNetwork", "autoLand", "allowSecrets"},
		"image": {"buildNetwork"}, "promote": {"engine", "sign"}, "init": {"exclude"}, "review": {"review", "check", "check.gate"},
		"approve": {"review"}, "check": {"check", "check.gate", "check.time"}, "hooks": {"review"}, "net": {"network", "allow", "deny"},
		"runs": {"runs.keep", "runs.maxBytes"}, "checkpoint": {"checkpoint", "checkpoint.max"}, "execs": {"exec.record", "exec.deny"},
		"agents": {"agent.default"},
	} {
		for _, key := range keys {
			if !names(command, key) {
				t.Errorf("the page of %s does not name airlock.%s", command, key)
			}
		}
	}
}

// TestDocumentIsExplained checks that the manual has each field of status --json in its order, with the nested fields.
func TestDocumentIsExplained(t *testing.T) {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[ui.Document]()) {
		name := jsonName(f)
		if name == "" {
			continue
		}
		if names = append(names, name); len(names) > len(manual.StatusFields) {
			break
		}
		for _, within := range namesWithin(f.Type) {
			if e := manual.StatusFields[len(names)-1]; name != "hold" && !strings.Contains(e.Text, "`"+within+"`") {
				t.Errorf("%s: %q does not name %s", e.Word, e.Text, within)
			}
		}
	}
	if explained := explainedWords(manual.StatusFields); !slices.Equal(names, explained) {
		t.Errorf("the document has %q, the manual %q", names, explained)
	}
}

// explainedWords returns the explained words.
func explainedWords(of []manual.Explained) (words []string) {
	for _, e := range of {
		words = append(words, e.Word)
	}
	return words
}

// jsonName returns the name of a field in a document, or an empty string if it is not in the document.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return strings.Trim(name, "-")
}

// namesWithin returns the names of all nested fields of a type.
func namesWithin(held reflect.Type) (names []string) {
	for held.Kind() == reflect.Pointer || held.Kind() == reflect.Slice {
		held = held.Elem()
	}
	if held.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(held) {
		if name := jsonName(f); name != "" {
			names = append(names, name)
		}
		names = append(names, namesWithin(f.Type)...)
	}
	return names
}

// literals returns the string literals in the code below a folder, by their positions.
func literals(t *testing.T, top string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != top && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if b, ok := n.(*ast.BasicLit); ok && b.Kind == token.STRING {
				if text, err := strconv.Unquote(b.Value); err == nil {
					found[files.Position(b.Pos()).String()] = text
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
