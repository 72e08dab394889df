package main

import (
	"bufio"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	var r request
	flag.StringVar(&r.version, "version", "", "version of the program")
	flag.StringVar(&r.date, "date", "", "when it was made, as of RFC 3339")
	flag.StringVar(&r.platform, "platform", "", "what it runs on, as in linux/amd64")
	flag.StringVar(&r.goroot, "goroot", "", "where Go itself is")
	flag.StringVar(&r.data, "data", "", "NAME@VERSION=FOLDER of data in the program")
	texts := flag.String("texts", "", "file that the texts of the licences are written to")
	flag.Parse()
	r.program = flag.Arg(0)
	if err := run(r, *texts); err != nil {
		fmt.Fprintf(os.Stderr, "components: %v\n", err)
		os.Exit(1) //nolint:forbidigo // a program of its own
	}
}

// request is what is asked for.
type request struct{ program, version, date, platform, goroot, data string }

func run(r request, texts string) error {
	if r.program == "" || r.version == "" || r.date == "" || r.platform == "" || r.goroot == "" || texts == "" {
		return errors.New("say -version, -date, -platform, -goroot, -texts and a program")
	}
	folders, err := foldersOf(os.Stdin)
	if err != nil {
		return err
	}
	list, licences, err := list(r, folders)
	if err != nil {
		return err
	}
	if err := os.WriteFile(texts, []byte(licences), 0o644); err != nil {
		return err
	}
	e := json.NewEncoder(os.Stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(list)
}

// foldersOf reads where modules are.
func foldersOf(in io.Reader) (map[string]string, error) {
	folders := map[string]string{}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if module, folder, ok := strings.Cut(lines.Text(), " "); ok {
			folders[module] = folder
		}
	}
	return folders, lines.Err()
}

// bom is a list of components, as of version 1.5 of CycloneDX.
type bom struct {
	BomFormat    string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type       string           `json:"type"`
	BomRef     string           `json:"bom-ref"`
	Name       string           `json:"name"`
	Version    string           `json:"version"`
	Hashes     []hash           `json:"hashes,omitempty"`
	Licenses   []cycloneLicence `json:"licenses"`
	PURL       string           `json:"purl"`
	Properties []property       `json:"properties,omitempty"`
}

type hash struct {
	Alg     string `json:"alg"`
	Content string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// list is the list for a program, and the texts of all licences in it but its own.
func list(r request, folders map[string]string) (b bom, texts string, err error) {
	built, err := buildinfo.ReadFile(r.program)
	if err != nil {
		return b, "", err
	}
	content, err := os.ReadFile(r.program)
	if err != nil {
		return b, "", err
	}
	sum := sha256.Sum256(content)
	root := newComponent("application", built.Main.Path, r.version)
	root.Name = filepath.Base(built.Path)
	root.Hashes = []hash{{"SHA-256", hex.EncodeToString(sum[:])}}
	root.Properties = []property{{"go:platform", r.platform}}
	own, err := licenceOf(folders[built.Main.Path])
	if err != nil {
		return b, "", err
	}
	root.Licenses = own.cyclone()
	b = bom{BomFormat: "CycloneDX", SpecVersion: "1.5", Version: 1, Metadata: metadata{r.date, root}}
	dependsOn := []string{}
	add := func(c component, folder string) error {
		l, err := licenceOf(folder)
		if err != nil {
			return fmt.Errorf("licence of %s: %w", c.Name, err)
		}
		c.Licenses = l.cyclone()
		for _, t := range l.texts {
			texts += fmt.Sprintf("%s %s, %s:\n\n%s\n\n", c.Name, c.Version, t.name, strings.TrimSpace(strings.ReplaceAll(t.content, "\r\n", "\n")))
		}
		b.Components, dependsOn = append(b.Components, c), append(dependsOn, c.BomRef)
		return nil
	}
	if err := add(newComponent("library", "std", strings.TrimPrefix(built.GoVersion, "go")), r.goroot); err != nil {
		return b, "", err
	}
	for _, d := range built.Deps {
		c := newComponent("library", d.Path, d.Version)
		c.Properties = []property{{"go:sum", d.Sum}}
		if err := add(c, folders[d.Path]); err != nil {
			return b, "", err
		}
	}
	if r.data != "" {
		name, folder, _ := strings.Cut(r.data, "=")
		name, version, _ := strings.Cut(name, "@")
		if err := add(newComponent("data", name, version), folder); err != nil {
			return b, "", err
		}
	}
	b.Dependencies = []dependency{{root.BomRef, dependsOn}}
	return b, texts, nil
}

// newComponent is one by its address as a package.
func newComponent(kind, name, version string) component {
	purl := "pkg:golang/" + strings.ToLower(name) + "@" + strings.ReplaceAll(version, "+", "%2B")
	return component{Type: kind, BomRef: purl, Name: name, Version: version, PURL: purl}
}
