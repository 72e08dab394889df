package recipe

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

func TestDetect(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"nothing":          {map[string]string{"README": "x"}, ""},
		"go":               {map[string]string{"go.mod": "module x\n\ngo 1.23.4\n"}, "go 1.23.4 go.mod"},
		"go of two parts":  {map[string]string{"go.mod": "module x\n\ngo 1.22\n"}, "go 1.22.0 go.mod"},
		"go toolchain":     {map[string]string{"go.mod": "module x\ngo 1.22\ntoolchain go1.23.1\n"}, "go 1.23.1 go.mod"},
		"node":             {map[string]string{"package.json": `{"engines": {"node": ">=18"}}`}, "node system package.json"},
		"node pinned":      {map[string]string{"package.json": `{"engines": {"node": "20.11.1"}, "packageManager": "pnpm@9.1.0+sha512.abc"}`}, "node 20.11.1 package.json pnpm@9.1.0"},
		"node by .nvmrc":   {map[string]string{"package.json": "{}", ".nvmrc": "v20.10.0\n", "yarn.lock": ""}, "node 20.10.0 .nvmrc yarn"},
		"node broken":      {map[string]string{"package.json": "{"}, "node system package.json"},
		"python":           {map[string]string{"pyproject.toml": "[project]\nrequires-python = '>=3.11'\n"}, "python system pyproject.toml"},
		"python uv":        {map[string]string{"pyproject.toml": "[tool.uv]\n", ".python-version": "3.12.7\n"}, "python 3.12.7 .python-version uv"},
		"python poetry":    {map[string]string{"pyproject.toml": "[tool.poetry]\n"}, "python system pyproject.toml poetry"},
		"python pipenv":    {map[string]string{"Pipfile": ""}, "python system Pipfile pipenv"},
		"rust":             {map[string]string{"Cargo.toml": "[package]\nrust-version = \"1.74\"\n"}, "rust 1.74.0 Cargo.toml"},
		"rust toolchain":   {map[string]string{"Cargo.toml": "[package]\n", "rust-toolchain.toml": "[toolchain]\nchannel = \"1.80.1\"\n"}, "rust 1.80.1 rust-toolchain.toml"},
		"dotnet":           {map[string]string{"src/App.csproj": "<TargetFramework>net8.0</TargetFramework>"}, "dotnet 8.0.100 src/App.csproj"},
		"dotnet sdk":       {map[string]string{"App.csproj": "<Project/>", "global.json": `{"sdk": {"version": "8.0.404"}}`}, "dotnet 8.0.404 global.json"},
		"dotnet unknown":   {map[string]string{"App.sln": ""}, "dotnet  App.sln"},
		"maven":            {map[string]string{"pom.xml": "<properties><java.version>21</java.version></properties>"}, "java 21 pom.xml maven"},
		"gradle":           {map[string]string{"build.gradle.kts": "java { toolchain { languageVersion = JavaLanguageVersion.of(17) } }"}, "java 17 build.gradle.kts gradle"},
		"tool versions":    {map[string]string{".tool-versions": "golang 1.23.4\nnodejs 20.1.0 # x\njava temurin-21.0.2+13\nterraform 1.5.7\nruby latest\nbad;name 1\n"}, "go 1.23.4 .tool-versions; java 21.0.2+13 .tool-versions temurin; node 20.1.0 .tool-versions; terraform 1.5.7 .tool-versions"},
		"tools win":        {map[string]string{"go.mod": "go 1.22\n", ".tool-versions": "golang 1.23.4\n"}, "go 1.23.4 .tool-versions"},
		"mise":             {map[string]string{"mise.toml": "[tools]\npython = '3.12.1'\nnode = {version = '22.1.0'}\n'npm:x' = '1.0.0'\nuv = '0.4.0'\nzig = ['0.13.0']\n", "pyproject.toml": ""}, "node 22.1.0 mise.toml; python 3.12.1 mise.toml uv@0.4.0; zig 0.13.0 mise.toml"},
		"mise is not TOML": {map[string]string{"mise.toml": "["}, ""},
	} {
		files := fstest.MapFS{}
		for file, content := range c.files {
			files[file] = &fstest.MapFile{Data: []byte(content)}
		}
		var got []string
		for _, f := range Detect(files) {
			got = append(got, strings.TrimRight(fmt.Sprintf("%s %s %s %s%s", f.Name, f.Version, f.File, f.Manager, f.Distribution), " "))
			if f.Version == "" {
				continue
			}
			if _, err := Parse(Marshal(Recipe{Languages: []Language{f.Language}})); err != nil {
				t.Errorf("%s: what was found is not a recipe: %v", name, err)
			}
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s: %q, want %q", name, strings.Join(got, "; "), c.want)
		}
	}
}

func TestParseLanguage(t *testing.T) {
	for text, want := range map[string]Language{
		"go":                           {Name: "go", Version: System},
		"golang=1.23.4":                {Name: "go", Version: "1.23.4"},
		"node=20.1.0,manager=pnpm@9.0": {Name: "node", Version: "20.1.0", Manager: "pnpm@9.0"},
		"java=21,distribution=temurin": {Name: "java", Version: "21", Distribution: "temurin"},
	} {
		if got, err := ParseLanguage(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "g o", "pyton=3.12", "node=latest", "node,managr=x", "node,manager=cargo", "go=1.2\n[x]"} {
		if _, err := ParseLanguage(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
	if _, err := ParseLanguage("dotnet"); !errors.Is(err, ErrNoVersion) {
		t.Errorf("dotnet without a version: %v", err)
	}
}

func TestMerge(t *testing.T) {
	const have = "# ours\nschema_version = 1\n\n[languages.go] # pinned\nversion = \"1.22.0\"\n"
	want := Recipe{OS: OS{Packages: []string{"make"}}, Languages: []Language{{Name: "go", Version: "1.23.4"}, {Name: "node", Version: System}}, Startup: []string{"make"}}
	merged, kept, err := Merge([]byte(have), want)
	if err != nil || !strings.HasPrefix(string(merged), have) || strings.Join(kept, " ") != "languages.go" {
		t.Fatalf("%s\nkept %q, %v", merged, kept, err)
	}
	r, err := Parse(merged)
	if err != nil || len(r.Languages) != 2 || r.Languages[0].Version != "1.22.0" || len(r.OS.Packages) != 1 || len(r.Startup) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	again, kept, err := Merge(merged, want)
	if err != nil || string(again) != string(merged) || len(kept) != 1 {
		t.Errorf("merged again: %s, %q, %v", again, kept, err)
	}
	if _, _, err := Merge([]byte("languages = {go = {version = \"1.22.0\"}}\n"), want); err == nil {
		t.Error("a table was added to one that ends on its line")
	}
	if _, _, err := Merge([]byte("[nonsense]"), want); err == nil {
		t.Error("a wrong recipe was added to")
	}
}
