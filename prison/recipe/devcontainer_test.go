package recipe_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison/recipe"
)

func TestParseDevcontainer(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		want    recipe.Recipe
		ignored string
	}{
		"image": {`// a comment with "quotes"
{
	"name": "x", // http://not.a.comment
	"image": "mcr.example/dev/containers:1", /* more, */
	"features": {"a": {}},
	"containerEnv": {"A": "1", "B": "${localEnv:TOKEN}", "PATH": "/x", "C": "a // b, }",},
	"postCreateCommand": "make prepare",
	"mounts": ["source=/,target=/host"],
}`, recipe.Recipe{OS: recipe.OS{Base: "mcr.example/dev/containers:1"}, Startup: []string{"make prepare"},
			Env: recipe.Env{Set: map[string]string{"A": "1", "C": "a // b, }"}}}, "features mounts containerEnv.B containerEnv.PATH"},
		"build": {`{"build": {"dockerfile": "Dockerfile", "args": {}}, "postCreateCommand": ["npm", "it's"]}`,
			recipe.Recipe{OS: recipe.OS{Dockerfile: ".devcontainer/Dockerfile", Context: ".devcontainer"}, Startup: []string{`npm 'it'\''s'`}}, "build.args"},
		"above": {`{"build": {"dockerfile": "../docker/Dockerfile", "context": ".."}, "postCreateCommand": {"b": "two", "a": ["one"], "c": ""}}`,
			recipe.Recipe{OS: recipe.OS{Dockerfile: "docker/Dockerfile"}, Startup: []string{"one", "two"}}, ""},
	} {
		got, ignored, err := recipe.ParseDevcontainer([]byte(c.content))
		if err != nil || !reflect.DeepEqual(got, c.want) || strings.Join(ignored, " ") != c.ignored {
			t.Errorf("%s: %+v, %q, %v", name, got, ignored, err)
		}
	}
	for content, want := range map[string]string{
		"{\n\"image\": \n}":             ":3: invalid character '}'",
		`{"image": 1}`:                  ":1: image: want a text, not a number",
		"{\n\"build\": []\n}":           ":2: build: want an object, not a list",
		`[]`:                            ":1: want an object, not a list",
		`{"containerEnv": {"A": true}}`: "containerEnv: want a text, not true or false",
		`{}`:                            "it has no image, build.dockerfile, containerEnv or postCreateCommand",
		`null`:                          "it has no image",
		`{"image": "a b"}`:              `image: "a b" is not the name`,
		`{"image": "a", "build": {"dockerfile": "b"}}`:       "both an image and a build.dockerfile",
		`{"build": {"dockerfile": "../../x"}}`:               `build.dockerfile: "../../x" is not in the repository`,
		`{"build": {"dockerfile": "x", "context": "../.."}}`: `build.context: "../.." is not in the repository`,
		`{"postCreateCommand": 1}`:                           "postCreateCommand: is neither a text nor a list",
		`{"postCreateCommand": ["a", 1]}`:                    "postCreateCommand: a word is not a text",
		`{"containerEnv": {"A B": ""}}`:                      `containerEnv: "A B" is not a valid variable`,
		`/*`:                                                 "unexpected end",
		strings.Repeat(" ", recipe.MaxSize+1):                "more than",
	} {
		if _, _, err := recipe.ParseDevcontainer([]byte(content)); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), recipe.DevcontainerName+":") {
			t.Errorf("%.40q: %v; want %s", content, err, want)
		}
	}
}

func FuzzParseDevcontainer(f *testing.F) {
	f.Add([]byte(`{"image": "a", /* b */ "postCreateCommand": ["c"], } // d`))
	f.Add([]byte(`"\`))
	f.Fuzz(func(t *testing.T, content []byte) {
		if _, _, err := recipe.ParseDevcontainer(content); err != nil && strings.ContainsFunc(err.Error(), func(c rune) bool { return c < ' ' }) {
			t.Errorf("%q", err)
		}
	})
}

func TestSourcesOf(t *testing.T) {
	const text = `FROM a AS b
COPY go.mod go.sum ./
copy --chown=1:1 scripts/ \
  # a comment
  tools/*.sh /opt/
COPY --from=b /x /y
ADD https://example.com/x.tar.gz /z
ADD ["a file", "/"]
RUN echo COPY secret /
`
	s := recipe.SourcesOf([]byte(text))
	if got := strings.Join(s, "|"); got != "go.mod|go.sum|scripts|tools/*.sh|a file" || slices.Contains(s, ".") {
		t.Errorf("%q", got)
	}
	for file, want := range map[string]bool{"go.mod": true, "scripts/a/b": true, "tools/x.sh": true, "tools/x.py": false, "secret": false, "a file": true, "sub/go.mod": false} {
		if s.Has(file) != want {
			t.Errorf("%s: %v", file, !want)
		}
	}
	for _, all := range []string{"COPY . .", "COPY ./ /x", "ADD $WHAT /", "COPY [bad", "COPY ../.. /x", "COPY a \"b c\" /"} {
		if s := recipe.SourcesOf([]byte(all)); all != "COPY [bad" && !slices.Contains(s, ".") || !s.Has("anything") && all != "COPY [bad" {
			t.Errorf("%s: %q", all, s)
		}
	}
}

func TestBasesOf(t *testing.T) {
	got := recipe.BasesOf([]byte("ARG X=1\nFROM --platform=linux/amd64 a:1 AS Build\nfrom \\\n b/c:2\nFROM build\nFROM $X\nFROM scratch\nFROM a:1"))
	if strings.Join(got, " ") != "a:1 b/c:2" {
		t.Errorf("%q", got)
	}
}
