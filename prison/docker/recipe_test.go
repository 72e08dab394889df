package docker_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison/docker/image"

	"github.com/docker/docker/api/types/build"
)

// recipes returns the Dockerfiles of recipes with all kinds of steps.
func recipes(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../recipe/testdata/*.Dockerfile")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	all := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(file)] = string(content)
	}
	return all
}

// TestRecipesAreParsed checks that the engine can parse the Dockerfiles of recipes. The engine parses a whole file before it builds the
// requested stage, which is empty here.
func TestRecipesAreParsed(t *testing.T) {
	t.Parallel()
	need(t)
	parsed := func(text string) string {
		var files bytes.Buffer
		content := "FROM " + testImage() + " AS nothing\n" + text
		w := tar.NewWriter(&files)
		err := w.WriteHeader(&tar.Header{Name: "Dockerfile", Mode: 0o644, Size: int64(len(content))})
		if _, writeErr := io.WriteString(w, content); err != nil || writeErr != nil || w.Close() != nil {
			t.Fatal(err, writeErr)
		}
		answer, err := engine(t).ImageBuild(t.Context(), &files, build.ImageBuildOptions{Target: "nothing", Version: build.BuilderV1})
		if err != nil {
			return err.Error()
		}
		defer answer.Body.Close()
		for said := json.NewDecoder(answer.Body); ; {
			var m struct{ Error string }
			if err := said.Decode(&m); err == io.EOF || m.Error != "" {
				return m.Error
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, text := range recipes(t) {
		if wrong := parsed(text); wrong != "" {
			t.Errorf("%s: %s", name, wrong)
		}
	}
	if wrong := parsed("FROM a\nRUNN b\n"); !strings.Contains(wrong, "unknown instruction") {
		t.Errorf("a wrong file was read: %q", wrong)
	}
}

// TestRecipeSteps runs the steps that download languages. Instead of apt-get, curl and mise there are programs that make tools which
// print the requested version. The steps must find, link and check each tool.
func TestRecipeSteps(t *testing.T) {
	t.Parallel()
	b := need(t)
	var steps strings.Builder
	// The engine reads stdout and stderr from two pipes and may join a part of a line of one with a line of the other.
	steps.WriteString("exec 2>&1\nset -ex\n")
	for line := range strings.Lines(strings.ReplaceAll(recipes(t)["mise.Dockerfile"], "\\\n", "")) {
		instruction, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch instruction {
		case "ARG", "ENV":
			steps.WriteString("export " + rest + "\n")
		case "RUN":
			steps.WriteString("/bin/sh -ec '" + strings.ReplaceAll(rest, "'", `'\''`) + "'\n")
		}
	}
	standIns, err := os.ReadFile("testdata/stand-ins")
	if err != nil {
		t.Fatal(err)
	}
	w := newBuild(t, "steps", "COPY . /stand-ins/", "RUN sh -e /stand-ins/all && sh -e /stand-ins/steps")
	w.Files = []image.File{{Name: "all", Content: standIns, Mode: 0o644}, {Name: "steps", Content: []byte(steps.String()), Mode: 0o644}}
	var said []string
	w.Progress = func(s image.Step) { said = append(said, s.Said) }
	if err := b.BuildImage(t.Context(), w); err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(said, "\n"))
	}
	// The output of the last step proves that the tools were checked.
	for _, want := range []string{"8.0.404", "temurin-21.0.2", "1.8.3", "1.9.8", "0.15.10"} {
		if !strings.Contains("\n"+strings.Join(said, "\n")+"\n", "\n"+want+"\n") {
			t.Errorf("no %s in %q", want, said)
		}
	}
}
