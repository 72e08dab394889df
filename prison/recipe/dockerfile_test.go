package recipe_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison/recipe"
)

func parse(t *testing.T, content string) recipe.Recipe {
	t.Helper()
	r, err := recipe.Parse([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestDockerfile compares whole files. Not every machine can build them, because mise fetches files, so at least
// their text is checked.
func TestDockerfile(t *testing.T) {
	files, err := filepath.Glob("testdata/*.toml")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want, _ := os.ReadFile(strings.TrimSuffix(file, ".toml") + ".Dockerfile")
		got := parse(t, string(content)).Dockerfile("")
		if string(got) != string(want) {
			t.Errorf("%s gives\n%s\nwant\n%s", file, got, want)
			if os.Getenv("UPDATE_SCRIPTS") != "" {
				os.WriteFile(strings.TrimSuffix(file, ".toml")+".Dockerfile", got, 0o644)
			}
		}
		if strings.Contains(string(got), "airlock") || strings.Contains(string(got), "LABEL") {
			t.Errorf("%s: a brand or a label", file)
		}
	}
}

func TestDockerfileBase(t *testing.T) {
	r := parse(t, "[os]\ndockerfile = \"Dockerfile\"\npackages = [\"make\"]")
	if got := string(r.Dockerfile("other:1")); !strings.HasPrefix(got, "FROM other:1\n") || !r.NeedsBuild() {
		t.Errorf("%s", got)
	}
	if parse(t, "[os]\ndockerfile = \"Dockerfile\"").NeedsBuild() {
		t.Error("a Dockerfile alone is built twice")
	}
	if !(recipe.Recipe{}).NeedsBuild() {
		t.Error("the baseline needs no image")
	}
}

// TestNeedsOfRecipe checks the programs and versions that a recipe needs from an image.
func TestNeedsOfRecipe(t *testing.T) {
	r := parse(t, `
[languages.python]
version = "3.12"
manager = "poetry"
[languages.java]
version = "system"
manager = "maven"
[languages.terraform]
version = "v1.9.8"
`)
	var got []string
	for _, n := range r.Needs() {
		got = append(got, n.Name+" "+n.Version+" "+strings.Join(n.Check, " ")+" "+strings.Join(n.Packages, ",")+" "+n.Mise)
	}
	want := []string{
		"java system java -version default-jdk-headless ", "maven system mvn --version maven ",
		"python 3.12 python3 --version python3,python3-pip,python3-venv,python-is-python3 python@3.12",
		"poetry system poetry --version python3-poetry ", "terraform v1.9.8 terraform --version  terraform@1.9.8",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestVersionMatches compares wanted versions with the output of programs about theirs.
func TestVersionMatches(t *testing.T) {
	for _, c := range []struct {
		version, printed string
		want             bool
	}{
		{"3.12", "Python 3.12.7", true}, {"3.1", "Python 3.12.7", false}, {"3.12.7", "Python 3.12.7", true},
		{"3.12.7", "Python 3.12.70", false}, {"1.26.0", "go version go1.26.0 linux/amd64", true}, {"v20", "v20.1.0", true},
		{"21", "openjdk version \"21.0.2\" 2024-01-16", true}, {"2.0", "openjdk version \"21.0.2\"", false},
		{"system", "anything", true}, {"1", "", false},
	} {
		if got := (recipe.Need{Version: c.version}).Meets(c.printed); got != c.want {
			t.Errorf("%q by %q: %v", c.version, c.printed, got)
		}
	}
}

func TestMissingPackages(t *testing.T) {
	const status = `Package: make
Status: install ok installed
Version: 4.3-4.1
Description: utility
 that builds

Package: gone
Status: deinstall ok config-files
Version: 1

Package: mawk
Status: install ok installed
Version: 1.3.4
Provides: awk (= 1), posix-awk
`
	got, err := recipe.MissingPackages(strings.NewReader(status), []string{"make", "make=4.3-4.1", "make=4.4", "gone", "awk", "posix-awk", "jq"})
	if err != nil || strings.Join(got, " ") != "make=4.4 gone jq" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestTrustingDockerfile checks that the steps which trust an authority are those of the same image, and leave nothing of the authority.
func TestTrustingDockerfile(t *testing.T) {
	t.Parallel()
	r := parse(t, "[os]\npackages = [\"make\"]\n[languages.node]\nversion = \"20.11.1\"\n[agents]\nclaude = \"1.2.3\"")
	var plain, own []string
	for _, line := range strings.Split(string(r.TrustingDockerfile("")), "\n") {
		if strings.Contains(line, "/tmp/authorities") {
			own = append(own, line)
		} else {
			plain = append(plain, line)
		}
	}
	if got, want := strings.Join(plain, "\n"), string(r.Dockerfile("")); got != want {
		t.Errorf("other steps\n%s\nwant\n%s", got, want)
	}
	if len(own) < 5 || !strings.HasPrefix(own[0], "COPY "+recipe.Authorities+" ") || own[len(own)-1] != "RUN rm -r /tmp/authorities" {
		t.Errorf("%q", own)
	}
	for _, line := range own {
		if strings.HasPrefix(line, "ENV") {
			t.Errorf("%s stays in the image", line)
		}
	}
}

// TestLeastNode checks that an agent which needs a newer Node than the recipe provides is not installed for an older one.
func TestLeastNode(t *testing.T) {
	t.Parallel()
	const node, gemini = "[languages.node]\nversion = ", "\n[agents]\ngemini = \"0.61.0\""
	for text, want := range map[string]struct {
		check string // the agent and the version that the image is checked for
		lacks bool
	}{
		gemini:                                                      {"gemini 20", true},
		"[os]\nbase = \"debian:12\"" + gemini:                       {"gemini 20", true},
		"[os]\nbase = \"debian:13\"" + gemini:                       {"gemini 20", false},
		node + `"22.12.0"` + gemini:                                 {"gemini 20", false},
		node + `"system"` + gemini:                                  {"gemini 20", true},
		node + `"18.20.8"` + gemini:                                 {"gemini 20", true},
		node + `"v20.1.0"` + gemini:                                 {"gemini 20", false},
		"[os]\nbase = \"debian:13\"\n" + node + `"system"` + gemini: {"gemini 20", false},
		node + `"20.1.0"` + gemini + "\nqwen = \"0.24.4\"":          {"qwen 22", true},
		node + `"20.1.0"` + gemini + "\nqwen = \"0.15.10\"":         {"gemini 20", false},
		"[agents]\nqwen = \"v0.24.4\"":                              {"qwen 22", true},
		"[agents]\nclaude = \"1.2.3\"":                              {"", false},
	} {
		r := parse(t, text)
		check := regexp.MustCompile(`< (\d+)\)\)' \|\| \{ \\\n    echo '(\w+) needs Node \d+ or later: set version = "22\.12\.0" in \[languages\.node\] of coding-environment\.toml' >&2; exit 1; \}\nRUN npm install`)
		if got := string(check.ReplaceAll(check.Find(r.Dockerfile("")), []byte("$2 $1"))); got != want.check || r.LacksNode() != want.lacks {
			t.Errorf("%q: checks %q, lacks %v\n%s", text, got, r.LacksNode(), r.Dockerfile(""))
		}
	}
}
