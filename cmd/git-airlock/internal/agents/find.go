package agents

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/prison"
)

// Found is an agent's program on this machine.
type Found struct {
	Path    string        // the program that was found on the PATH, without links
	Version string        // of the npm package; empty if the program does not come from one
	Tools   []prison.Tool // what a prison needs of this machine
	argv    []string      // the program inside
}

// Missing reports that this machine has no program of an agent, or that a prison cannot use it.
type Missing struct {
	Profile
	Reason string
}

func (e *Missing) Error() string { return fmt.Sprintf("%s: %s", e.Name, e.Reason) }

// Find looks for the program of an agent in the folders of a PATH. A program that is a script for Node is found with its package and
// with Node. A missing program is a [*Missing] error.
func Find(p Profile, path string) (f Found, err error) {
	at, err := program(p.Program, path)
	if err != nil {
		return f, &Missing{p, err.Error()}
	}
	f.Path = at
	kind, err := interpreter(at)
	if err != nil {
		return f, &Missing{p, err.Error()}
	}
	top, manifest := packageOf(at)
	f.Version = manifest.Version
	switch {
	case kind == "", kind == "sh", kind == "bash":
		f.Tools, f.argv = []prison.Tool{{Name: p.Name, Path: at}}, []string{prison.Tools + "/" + p.Name}
		return f, nil
	case kind != "node":
		return f, &Missing{p, fmt.Sprintf("%s is a script for %s, which a prison may not have; share it with --tool, and give the command after \"--\"", at, kind)}
	case top == "":
		return f, &Missing{p, at + " is a script for node outside of an npm package; share it with --tool, and give the command after \"--\""}
	}
	within, err := filepath.Rel(top, at)
	if err != nil {
		return f, err
	}
	node, tools, err := node(path)
	if err != nil {
		return f, &Missing{p, err.Error()}
	}
	shared := prison.Tool{Name: p.Name, Path: top}
	if modules := manifest.beside(top); modules != "" {
		shared = prison.Tool{Name: filepath.Base(modules), Path: modules}
		if within, err = filepath.Rel(modules, at); err != nil {
			return f, err
		}
	}
	f.Tools = append(tools, shared)
	f.argv = []string{node, prison.Tools + "/" + shared.Name + "/" + filepath.ToSlash(within)}
	return f, nil
}

// In returns the beginning of the agent's command in a prison: with images the program of the image, otherwise the shared one.
func (f Found) In(p Profile, images bool) []string {
	if images || len(f.argv) == 0 {
		return []string{p.Program}
	}
	return f.argv
}

// program finds an executable file in the folders of a PATH, and returns its path without links.
func program(name, path string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			return "", fmt.Errorf("%q is not the name of a program, and no absolute path", name)
		}
		at, err := filepath.EvalSymlinks(name)
		if err != nil {
			return "", fmt.Errorf("program %q is not on this machine", name)
		}
		return at, nil
	}
	for _, folder := range filepath.SplitList(path) {
		if !filepath.IsAbs(folder) {
			continue
		}
		at := filepath.Join(folder, name)
		if info, err := os.Stat(at); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return filepath.EvalSymlinks(at)
		}
	}
	return "", fmt.Errorf("%s is not on your PATH (folders inside the work tree are not searched)", name)
}

// system are the folders of the host's system that every prison without an image shows.
var system = []string{"/usr/", "/bin/"}

// node finds Node, and returns its path in a prison. If Node does not belong to the host's system, tools has Node as a tool that the prison
// must share.
func node(path string) (command string, tools []prison.Tool, err error) {
	at, err := program("node", path)
	if err != nil {
		return "", nil, err
	}
	if slices.ContainsFunc(system, func(folder string) bool { return strings.HasPrefix(at, folder) }) {
		return at, nil, nil
	}
	return prison.Tools + "/node", []prison.Tool{{Name: "node", Path: at}}, nil
}

// interpreter returns the name of the program that a script's first line names, without its folder. It is empty for other programs.
func interpreter(at string) (string, error) {
	file, err := os.Open(at)
	if err != nil {
		return "", err
	}
	defer file.Close()
	line, err := bufio.NewReader(io.LimitReader(file, 256)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	if !strings.HasPrefix(line, "#!") || len(words) == 0 {
		return "", nil
	}
	name := filepath.Base(words[0])
	if name == "env" {
		name = ""
		if i := slices.IndexFunc(words[1:], func(w string) bool { return !strings.HasPrefix(w, "-") && !strings.Contains(w, "=") }); i >= 0 {
			name = words[1+i]
		}
	}
	return name, nil
}

// manifest has the fields of package.json that are needed here.
type manifest struct {
	Version      string            `json:"version"`
	Dependencies map[string]string `json:"dependencies"`
	Optional     map[string]string `json:"optionalDependencies"`
}

// beside returns the folder node_modules around a package if the packages that it loads are in there, beside it. This is so in a
// project, while "npm install --global" puts them into the package. It returns an empty path otherwise.
func (m manifest) beside(top string) string {
	modules := top
	for filepath.Base(modules) != "node_modules" {
		modules = filepath.Dir(modules)
	}
	for _, needed := range []map[string]string{m.Dependencies, m.Optional} {
		for name := range needed {
			if filepath.IsLocal(name) && !isFolder(filepath.Join(top, "node_modules", name)) && isFolder(filepath.Join(modules, name)) {
				return modules
			}
		}
	}
	return ""
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// packageOf returns the folder of the npm package that a file belongs to: the one directly below the outermost node_modules, so that
// the packages which it loads are in it. It returns an empty path if the file is in no package.
func packageOf(at string) (top string, m manifest) {
	parts := strings.Split(at, "/")
	i := slices.Index(parts, "node_modules")
	n := i + 2
	if i < 0 || n >= len(parts) {
		return "", m
	}
	if strings.HasPrefix(parts[n-1], "@") {
		n++
	}
	top = strings.Join(parts[:n], "/")
	content, err := fs.ReadFile(os.DirFS(top), "package.json")
	if err != nil || json.Unmarshal(content, &m) != nil {
		return "", manifest{}
	}
	return top, m
}
