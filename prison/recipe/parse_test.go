package recipe_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison/recipe"
)

const whole = `
schema_version = 1
[os]
base = "debian:12"
packages = ["make", "libpq-dev", "make", "jq=1.6-2.1"]
[languages.python]
version = "3.12.7"
manager = "uv@0.5.9"
[languages.go]
version = "system"
[languages.java]
version = "21.0.2"
manager = "maven"
distribution = "temurin"
[languages.terraform]
version = "1.9.8"
[startup]
commands = ["make prepare", "make prepare"]
[agents]
codex = "0.169.0"
claude = "2.1.330"
[prestart]
commands = ["redis-server --port 6379"]
[env]
pass = ["NPM_TOKEN", "NPM_TOKEN"]
[env.set]
GOFLAGS = "-mod=mod"
EMPTY = ""
`

var wholeRecipe = recipe.Recipe{
	OS: recipe.OS{Base: "debian:12", Packages: []string{"make", "libpq-dev", "jq=1.6-2.1"}},
	Languages: []recipe.Language{
		{Name: "go", Version: "system"},
		{Name: "java", Version: "21.0.2", Manager: "maven", Distribution: "temurin"},
		{Name: "python", Version: "3.12.7", Manager: "uv@0.5.9"},
		{Name: "terraform", Version: "1.9.8"},
	},
	Agents:   []recipe.Agent{{Name: "claude", Version: "2.1.330"}, {Name: "codex", Version: "0.169.0"}},
	Startup:  []string{"make prepare", "make prepare"},
	Prestart: []string{"redis-server --port 6379"},
	Env:      recipe.Env{Pass: []string{"NPM_TOKEN"}, Set: map[string]string{"GOFLAGS": "-mod=mod", "EMPTY": ""}},
}

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		want    recipe.Recipe
	}{
		"whole":      {whole, wholeRecipe},
		"empty":      {"", recipe.Recipe{}},
		"no version": {"[startup]\ncommands = ['make']", recipe.Recipe{Startup: []string{"make"}}},
		"other spellings": {"os.packages = [ 'make' ]\nlanguages = { go = { version = 'system' } }", recipe.Recipe{
			OS: recipe.OS{Packages: []string{"make"}}, Languages: []recipe.Language{{Name: "go", Version: "system"}}}},
		"a dockerfile": {"[os]\ndockerfile = \"docker/Dockerfile.dev\"", recipe.Recipe{OS: recipe.OS{Dockerfile: "docker/Dockerfile.dev"}}},
	} {
		got, err := recipe.Parse([]byte(c.content))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
}

// wrongRecipes have one mistake each, with the message that must name it.
var wrongRecipes = []struct{ content, want string }{
	{"schema_version = 2", ":1: schema_version 2 is newer than this program reads (1): a newer program is needed"},
	{"\nschema_version = 0", ":2: schema_version is 0; the first one is 1"},
	{"schema_version = \"1\"", ":1: schema_version is a text, want the number 1"},
	{"schema_version = true", ":1: schema_version is true or false, want the number 1"},
	{"schema_version = 1.5", ":1: schema_version is a number, want the number 1"},
	{"[os\nbase = 1", ":1: not TOML at column 4: "},
	{"[os]\nbase = \"a\"\nbase = \"b\"", ":3: not TOML at column 1: "},
	{"[os]\nbase = \"\x1b[2J\"", ":2: not TOML at column 9: "},
	{"\n[oss]\nbase = \"debian:12\"", `:2: unknown key oss; did you mean "os"?`},
	{"[agents]\nclaud = \"1.0\"", `:2: unknown key agents.claud; did you mean "claude"?`},
	{"[agents]\nclaude = \"latest\"", `:2: agents.claude: "latest" is not an exact version: give one such as "1.2.3"`},
	{"[agents]\nclaude = 2", `:2: agents.claude: is a number, want a text: write it in quotes`},
	{"[langauges.go]\nversion = \"1.22.1\"", `:1: unknown key langauges; did you mean "languages"?`},
	{"[os]\npackges = []", `:2: unknown key os.packges; did you mean "packages"?`},
	{"[os]\n\"\\u001b]0;x\" = 1", `:2: unknown key os."\x1b]0;x"; here can be base, packages, dockerfile`},
	{"[ports]\nweb = 80", ":1: [ports]: reserved; ports are not forwarded yet"},
	{"[network]\nmode = \"open\"", ":1: [network]: a recipe cannot set this, because everybody who commits can change it"},
	{"[mounts]\nhome = \"/root\"", ":1: [mounts]: a recipe cannot set this"},
	{"os = \"debian\"", ":1: os: is a text, want a table such as [os]"},
	{"[os]\nbase = \"\"", `:2: os.base: "" is not the name of a container image, such as "debian:12"`},
	{"[os]\nbase = \"A/B\"", `:2: os.base: "A/B" is not the name of a container image`},
	{"[os]\nbase = \"debian@sha256:abc\"", `:2: os.base: "debian@sha256:abc" is not the name of a container image`},
	{"[os]\nbase = \"debian//12\"", `:2: os.base: "debian//12" is not the name of a container image`},
	{"[os]\nbase = \"debian:12\\nRUN id\"", `:2: os.base: "debian:12\nRUN id" is not the name of a container image`},
	{"[os]\nbase = [\"debian\"]", ":2: os.base: is a list, want a text in quotes"},
	{"[os]\npackages = \"make\"", `:2: os.packages: is a text, want a list such as ["...", "..."]`},
	{"[os]\npackages = [\"make\", \"jq; rm -rf /\"]", `:2: os.packages: entry 2, "jq; rm -rf /", is not the name of a Debian package`},
	{"[os]\npackages = [\"--allow-unauthenticated\"]", `:2: os.packages: entry 1, "--allow-unauthenticated", is not the name`},
	{"[os]\npackages = [1]", ":2: os.packages: entry 1 is a number, want a text in quotes"},
	{"[os]\ndockerfile = \"../Dockerfile\"", `:2: os.dockerfile: "../Dockerfile" is not the path of a file in the repository`},
	{"[os]\ndockerfile = \"/etc/Dockerfile\"", `:2: os.dockerfile: "/etc/Dockerfile" is not the path`},
	{"[os]\ndockerfile = \".git/config\"", `:2: os.dockerfile: ".git/config" is not the path`},
	{"[os]\nbase = \"debian:12\"\ndockerfile = \"Dockerfile\"", ":3: os.dockerfile: there is a base as well"},
	{"languages = [\"go\"]", ":1: languages: is a list, want a table such as [languages]"},
	{"[languages]\ngo = \"1.22.1\"", ":2: languages.go: is a text, want a table such as [languages.go]"},
	{"[languages.go]", `:1: languages.go.version: is missing: give an exact one such as "1.2.3", or "system"`},
	{"[languages.golang]\nversion = \"1.22.1\"", `:1: languages.golang: its name here is "go"`},
	{"[languages.pyhton]\nversion = \"3.12.7\"", `:1: languages.pyhton: unknown language; did you mean "python"?`},
	{"[languages.\"a b\"]\nversion = \"1.0\"", `:1: languages."a b": that is not the name of a language`},
	{"[languages.node]\nversion = \"latest\"", `:2: languages.node.version: "latest" is not an exact version`},
	{"[languages.node]\nversion = \"^20.1\"", `:2: languages.node.version: "^20.1" is not an exact version`},
	{"[languages.python]\nversion = 3.12", ":2: languages.python.version: is a number, want a text: write it in quotes"},
	{"[languages.dotnet]\nversion = \"system\"", ":2: languages.dotnet.version: no package of Debian is known for dotnet"},
	{"[languages.node]\nversion = \"20.1.0\"\nmanager = \"yran\"", `:3: languages.node.manager: "yran" is not one of npm, pnpm, yarn; did you mean yarn?`},
	{"[languages.go]\nversion = \"1.22.1\"\nmanager = \"dep\"", ":3: languages.go.manager: go has no managers to choose from"},
	{"[languages.node]\nversion = \"20.1.0\"\nmanager = \"npm@9.0.0\"", ":3: languages.node.manager: npm comes with node"},
	{"[languages.node]\nversion = \"20.1.0\"\nmanager = \"pnpm@latest\"", `:3: languages.node.manager: "latest" is not an exact version of pnpm`},
	{"[languages.java]\nversion = \"21.0.2\"\ndistribution = \"sun\"", `:3: languages.java.distribution: "sun" is not one of openjdk, temurin`},
	{"[languages.go]\nversion = \"1.22.1\"\ndistribution = \"temurin\"", ":3: languages.go.distribution: only java has distributions"},
	{"[languages.java]\nversion = \"system\"\ndistribution = \"zulu\"", `:3: languages.java.distribution: with version "system" it is Debian's own`},
	{"[languages.go]\nversion = \"1.22.1\"\nversoin = \"\"", `:3: unknown key languages.go.versoin; did you mean "version"?`},
	{"[startup]\ncommands = \"make\"", ":2: startup.commands: is a text, want a list"},
	{"[startup]\ncommands = [\"make\", \"  \"]", `:2: startup.commands: entry 2, "  ", is not a command`},
	{"[startup]\ncommand = [\"make\"]", `:2: unknown key startup.command; did you mean "commands"?`},
	{"[prestart]\ncommands = [true]", ":2: prestart.commands: entry 1 is true or false, want a text in quotes"},
	{"[env]\npass = [\"A B\"]", `:2: env.pass: entry 1, "A B", is not the name of a variable`},
	{"[env]\npass = [\"HOME\"]", ":2: env.pass: HOME belongs to the environment itself"},
	{"[env]\nGOFLAGS = \"x\"", ":2: unknown key env.GOFLAGS; here can be pass, set"},
	{"[env.set]\nPATH = \"/x\"", ":2: env.set.PATH: belongs to the environment itself"},
	{"[env.set]\n\"A=B\" = \"\"", `:2: env.set."A=B": that is not the name of a variable`},
	{"[env.set]\nPORT = 80", ":2: env.set.PORT: is a number, want a text: write it in quotes"},
	{"[env]\npass = [\"A\"]\n[env.set]\nA = \"1\"", ":4: env.set.A: is passed as well: choose one of the two"},
	{"[env.set]\nWHEN = 2026-11-21", ":2: env.set.WHEN: is a date or a time, want a text in quotes"},
}

// TestMistakesHaveLines checks that each mistake is reported with its line, and that no other is.
func TestMistakesHaveLines(t *testing.T) {
	said := map[string]string{}
	for _, c := range wrongRecipes {
		_, err := recipe.Parse([]byte(c.content))
		var all recipe.Errors
		if !errors.As(err, &all) || len(all) != 1 {
			t.Errorf("%q: %v; want one error", c.content, err)
			continue
		}
		if !strings.HasPrefix(err.Error(), recipe.FileName+c.want) {
			t.Errorf("%q:\n got %s\nwant %s%s", c.content, err, recipe.FileName, c.want)
		}
		if other, again := said[err.Error()]; again {
			t.Errorf("%q and %q have the same message: %s", c.content, other, err)
		}
		said[err.Error()] = c.content
		if strings.ContainsFunc(err.Error(), func(c rune) bool { return c < ' ' }) {
			t.Errorf("%q: a control character in %q", c.content, err)
		}
	}
	if len(wrongRecipes) < 30 {
		t.Errorf("%d wrong recipes", len(wrongRecipes))
	}
}

// TestAllMistakesAreReported checks that all mistakes are reported at once, in the order of the lines.
func TestAllMistakesAreReported(t *testing.T) {
	_, err := recipe.Parse([]byte("[startup]\ncommands = 1\n[os]\nbase = 2\n[languages.go]\nversion = \"latest\"\n"))
	var all recipe.Errors
	if !errors.As(err, &all) || len(all) != 3 || all[0].Line != 2 || all[1].Line != 4 || all[2].Line != 6 {
		t.Errorf("%v", err)
	}
}

// TestByteOrderMark parses what editors on Windows write, as git's own configuration may have it.
func TestByteOrderMark(t *testing.T) {
	if _, err := recipe.Parse([]byte("\ufeffschema_version = 1\r\n")); err != nil {
		t.Error(err)
	}
}

func TestTooLarge(t *testing.T) {
	_, err := recipe.Parse([]byte(strings.Repeat("#", recipe.MaxSize+1)))
	if err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Error(err)
	}
	many := "[startup]\ncommands = [" + strings.Repeat("\"a\",", 501) + "]"
	if _, err := recipe.Parse([]byte(many)); err == nil || !strings.Contains(err.Error(), "501 entries are more than 500") {
		t.Error(err)
	}
}

// TestMarshalRoundTrip checks that Parse reads a recipe as it was before Marshal.
func TestMarshalRoundTrip(t *testing.T) {
	odd := recipe.Recipe{
		Startup: []string{"printf '\\t\"%s\"' \"$HOME\"\nexit 0\n", "tab\tbell\a\u202e\U000e0001 ä"},
		Env:     recipe.Env{Set: map[string]string{"lower": "", "UPPER": "\\"}},
	}
	for _, r := range []recipe.Recipe{{}, wholeRecipe, odd} {
		content := recipe.Marshal(r)
		again, err := recipe.Parse(content)
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%s\nis read as %+v, %v; want %+v", content, again, err, r)
		}
		if strings.Contains(string(content), "airlock") {
			t.Errorf("%s\nnames the tool", content)
		}
	}
}

// FuzzParse looks for recipes that can be read but not written, or whose written form cannot be read.
func FuzzParse(f *testing.F) {
	f.Add(whole)
	for _, c := range wrongRecipes {
		f.Add(c.content)
	}
	f.Fuzz(func(t *testing.T, content string) {
		r, err := recipe.Parse([]byte(content))
		if err != nil {
			if strings.ContainsFunc(err.Error(), func(c rune) bool { return c < ' ' || c == 0x7f }) {
				t.Errorf("control characters in %q", err)
			}
			return
		}
		if again, err := recipe.Parse(recipe.Marshal(r)); err != nil || !reflect.DeepEqual(normal(r), normal(again)) {
			t.Errorf("%q is read as %+v and written as %s, which is read as %+v, %v", content, r, recipe.Marshal(r), again, err)
		}
	})
}

// normal replaces empty values by missing ones.
func normal(r recipe.Recipe) recipe.Recipe {
	if len(r.Env.Set) == 0 {
		r.Env.Set = nil
	}
	return r
}
