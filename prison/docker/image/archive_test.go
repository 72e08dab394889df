package image

import (
	"archive/tar"
	"errors"
	"io"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
)

// unpacked returns the files that an engine sees after unpacking an archive: a later entry replaces an earlier one and all below it.
func unpacked(t *testing.T, w Build) (files map[string]string, name string) {
	t.Helper()
	archive, name, err := w.archive()
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	for r := tar.NewReader(archive); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, name
		}
		if err != nil {
			t.Fatal(err)
		}
		at := path.Clean(h.Name)
		for other := range files {
			if other == at || strings.HasPrefix(other, at+"/") {
				delete(files, other)
			}
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[at] = string(content) + h.Linkname
	}
}

// TestStepsAreThoseOfTheBuild gives a build contexts whose names are made of the names in earlier archives. The engine must read the build's
// Dockerfile in all of them, and find each file of the context unchanged.
func TestStepsAreThoseOfTheBuild(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	known := []string{".build-steps", "Dockerfile", "dockerfile", ".dockerignore", ".Dockerignore", ".containerignore", "a"}
	for range 2000 {
		w := Build{Dockerfile: []byte("FROM ours\n")}
		for range r.IntN(6) {
			name := known[r.IntN(len(known))]
			switch r.IntN(6) {
			case 0:
				name += "/x"
			case 1:
				name += ".dockerignore"
			case 2:
				name = strings.ToUpper(name)
			}
			taken := func(f File) bool {
				return f.Name == name || strings.HasPrefix(f.Name, name+"/") || strings.HasPrefix(name, f.Name+"/")
			}
			if slices.ContainsFunc(w.Files, taken) {
				continue
			}
			f := File{Name: name, Content: []byte("!" + known[r.IntN(len(known))]), Mode: 0o644}
			if r.IntN(4) == 0 {
				f.Link, f.Content = known[r.IntN(len(known))], nil
			}
			w.Files = append(w.Files, f)
		}
		files, name := unpacked(t, w)
		if files[name] != string(w.Dockerfile) {
			t.Fatalf("the steps are %q in %q", files[name], files)
		}
		for _, f := range w.Files {
			if strings.EqualFold(f.Name, name) || f.Link == name || strings.HasPrefix(strings.ToLower(f.Name), name) {
				t.Fatalf("the commit has the file %q", f.Name)
			}
			got := files[f.Name]
			if f.Name == ".dockerignore" && f.Link == "" {
				got = strings.TrimSuffix(got, "\n"+name+"\n")
			}
			if got != string(f.Content)+f.Link {
				t.Fatalf("%s is %q in %q", f.Name, got, files)
			}
		}
		known = append(known[:min(len(known), 40)], name)
	}
}
