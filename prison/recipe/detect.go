package recipe

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/git-airlock/git-airlock/gitops/bounded"
)

// Found is a language that the files of a repository indicate.
type Found struct {
	Language        // without a version if no file names one and the distribution has no package
	File     string // the file with the most information
}

// Detect reads the files at the top of a work tree, and .NET projects also one folder below. Files that cannot be
// read are ignored, because they are written for other programs.
func Detect(files fs.FS) []Found {
	d := &detection{files: files, found: map[string]Found{}}
	d.golang()
	d.node()
	d.python()
	d.rust()
	d.dotnet()
	d.java()
	d.toolVersions()
	for _, name := range []string{"mise.toml", ".mise.toml"} {
		d.mise(name)
	}
	var all []Found
	for _, f := range d.found {
		if f.Version == "" && hasSystem(f.Name) {
			f.Version = System
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b Found) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// detection collects the languages of a work tree.
type detection struct {
	files fs.FS
	found map[string]Found
}

// read returns the beginning of a regular file, or an empty string if there is none.
func (d *detection) read(name string) string {
	f, err := d.files.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	content, err := io.ReadAll(io.LimitReader(f, MaxSize))
	if err != nil {
		return ""
	}
	return string(content)
}

func (d *detection) has(name string) bool {
	info, err := fs.Stat(d.files, name)
	return err == nil && info.Mode().IsRegular()
}

// add adds a language, or more information about it. A version is left out unless it is exact.
func (d *detection) add(file string, l Language) {
	f, known := d.found[l.Name]
	if !known {
		f = Found{Language: Language{Name: l.Name}, File: file}
	}
	if versionText().MatchString(l.Version) {
		f.Version, f.File = strings.TrimPrefix(l.Version, "v"), file
		f.Distribution = l.Distribution
	}
	f.Manager = cmp.Or(l.Manager, f.Manager)
	d.found[l.Name] = f
}

// first returns the first group of an expression in a text, or an empty string if it does not match.
func first(expression *regexp.Regexp, text string) string {
	if m := expression.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

var (
	goVersion   = lazily(`(?m)^go[ \t]+([0-9.]+)`)
	goToolchain = lazily(`(?m)^toolchain[ \t]+go([0-9.]+)`)
	threeParts  = lazily(`^v?\d+\.\d+\.\d+$`)
)

func (d *detection) golang() {
	content := d.read("go.mod")
	if content == "" {
		return
	}
	d.add("go.mod", Language{Name: "go", Version: completed(cmp.Or(first(goToolchain(), content), first(goVersion(), content)))})
}

// completed turns "1.74" into the first release with that prefix, "1.74.0".
func completed(version string) string {
	if strings.Count(version, ".") == 1 {
		version += ".0"
	}
	return version
}

// exact returns a version of three numbers unchanged, and an empty string otherwise, because a range cannot be installed.
func exact(version string) string {
	if version = strings.TrimSpace(version); threeParts().MatchString(version) {
		return version
	}
	return ""
}

func (d *detection) node() {
	var p struct {
		Engines        struct{ Node string }
		Volta          struct{ Node string }
		PackageManager string
	}
	content := d.read("package.json")
	if content == "" {
		return
	}
	_ = json.Unmarshal([]byte(content), &p) // keys that cannot be read stay empty
	l := Language{Name: "node", Version: cmp.Or(exact(p.Volta.Node), exact(p.Engines.Node))}
	name, version, _ := strings.Cut(p.PackageManager, "@")
	version, _, _ = strings.Cut(version, "+")
	switch {
	case slices.Contains(Managers("node")[1:], name):
		l.Manager = name
		if exact(version) != "" {
			l.Manager += "@" + version
		}
	case d.has("pnpm-lock.yaml"):
		l.Manager = "pnpm"
	case d.has("yarn.lock"):
		l.Manager = "yarn"
	}
	d.add("package.json", l)
	for _, name := range []string{".nvmrc", ".node-version"} {
		d.versionFile("node", name)
	}
}

// versionFile reads a version from a file that contains nothing else.
func (d *detection) versionFile(language, name string) {
	if v := exact(d.read(name)); v != "" {
		d.add(name, Language{Name: language, Version: v})
	}
}

func (d *detection) python() {
	for _, name := range []string{"pyproject.toml", "setup.py", "requirements.txt", "Pipfile"} {
		if !d.has(name) {
			continue
		}
		content := d.read("pyproject.toml")
		l := Language{Name: "python"}
		switch {
		case d.has("uv.lock") || strings.Contains(content, "[tool.uv"):
			l.Manager = "uv"
		case d.has("poetry.lock") || strings.Contains(content, "[tool.poetry"):
			l.Manager = "poetry"
		case d.has("Pipfile"):
			l.Manager = "pipenv"
		}
		d.add(name, l)
		d.versionFile("python", ".python-version")
		return
	}
}

var (
	rustVersion = lazily(`(?m)^rust-version[ \t]*=[ \t]*"([0-9.]+)"`)
	rustChannel = lazily(`(?m)^channel[ \t]*=[ \t]*"([0-9.]+)"`)
)

func (d *detection) rust() {
	content := d.read("Cargo.toml")
	if content == "" {
		return
	}
	d.add("Cargo.toml", Language{Name: "rust", Version: completed(first(rustVersion(), content))})
	if v := first(rustChannel(), d.read("rust-toolchain.toml")); v != "" {
		d.add("rust-toolchain.toml", Language{Name: "rust", Version: completed(v)})
	}
	d.versionFile("rust", "rust-toolchain")
}

var targetFramework = lazily(`<TargetFrameworks?>\s*net(\d+\.\d+)`)

func (d *detection) dotnet() {
	for _, pattern := range []string{"*.csproj", "*.fsproj", "*.vbproj", "*/*.csproj", "*/*.fsproj", "*.sln"} {
		names, err := fs.Glob(d.files, pattern)
		if err != nil || len(names) == 0 {
			continue
		}
		l := Language{Name: "dotnet"}
		if v := first(targetFramework(), d.read(names[0])); v != "" {
			l.Version = v + ".100" // the first SDK of each release
		}
		d.add(names[0], l)
		var g struct{ SDK struct{ Version string } }
		if json.Unmarshal([]byte(d.read("global.json")), &g) == nil && exact(g.SDK.Version) != "" {
			d.add("global.json", Language{Name: "dotnet", Version: g.SDK.Version})
		}
		return
	}
}

var (
	mavenJava  = lazily(`<(?:maven\.compiler\.release|java\.version|maven\.compiler\.target|release)>\s*(\d+)\s*<`)
	gradleJava = lazily(`(?:JavaLanguageVersion\.of\(|jvmToolchain\()\s*(\d+)`)
)

func (d *detection) java() {
	if content := d.read("pom.xml"); content != "" {
		d.add("pom.xml", Language{Name: "java", Version: first(mavenJava(), content), Manager: "maven"})
		return
	}
	for _, name := range []string{"build.gradle", "build.gradle.kts"} {
		if content := d.read(name); content != "" {
			d.add(name, Language{Name: "java", Version: first(gradleJava(), content), Manager: "gradle"})
			return
		}
	}
}

// toolVersions reads asdf's file: a name and a version on each line.
func (d *detection) toolVersions() {
	const name = ".tool-versions"
	for line := range strings.Lines(d.read(name)) {
		line, _, _ = strings.Cut(line, "#")
		if fields := strings.Fields(line); len(fields) >= 2 {
			d.tool(name, fields[0], fields[1])
		}
	}
}

// mise reads the tools of a mise.toml.
func (d *detection) mise(name string) {
	var m struct{ Tools map[string]any }
	content := []byte(d.read(name))
	if bounded.Usual.TOML(content) != nil || toml.Unmarshal(content, &m) != nil {
		return
	}
	for tool, value := range m.Tools {
		if list, ok := value.([]any); ok && len(list) > 0 {
			value = list[0]
		}
		if options, ok := value.(map[string]any); ok {
			value = options["version"]
		}
		if version, ok := value.(string); ok {
			d.tool(name, tool, version)
		}
	}
}

var distributionVersion = lazily(`^([a-z][a-z0-9-]*)-(\d.*)$`)

// tool adds an entry of a tool manager's file. Such files also list package managers.
func (d *detection) tool(file, name, version string) {
	name = strings.TrimPrefix(name, "core:")
	l := Language{Name: nameOf(name), Version: version}
	if m := distributionVersion().FindStringSubmatch(version); m != nil && l.Name == "java" && slices.Contains(distributions, m[1]) {
		l.Distribution, l.Version = m[1], m[2]
	}
	for language, known := range languages {
		if slices.Contains(known.managers, name) {
			if _, used := d.found[language]; used && name != known.managers[0] && versionText().MatchString(version) {
				d.add(file, Language{Name: language, Manager: name + "@" + version})
			}
			return
		}
	}
	if languageName().MatchString(l.Name) && versionText().MatchString(l.Version) {
		d.add(file, l)
	}
}

// nameOf returns the name of a language in recipes.
func nameOf(name string) string {
	for own, known := range languages {
		if slices.Contains(known.aliases, name) {
			return own
		}
	}
	return name
}

// ErrNoVersion reports that a language needs a version and none was named.
var ErrNoVersion = errors.New("no version is named, and the distribution has no package for it")

// ParseLanguage reads NAME[=VERSION][,manager=MANAGER][,distribution=DISTRIBUTION], with the rules of a recipe.
func ParseLanguage(text string) (Language, error) {
	fields := strings.Split(text, ",")
	l := Language{}
	l.Name, l.Version, _ = strings.Cut(fields[0], "=")
	l.Name = nameOf(l.Name)
	for _, field := range fields[1:] {
		switch key, value, _ := strings.Cut(field, "="); key {
		case "manager":
			l.Manager = value
		case "distribution":
			l.Distribution = value
		default:
			return l, errors.New("after a language can be manager=... and distribution=..., not " + quote(field))
		}
	}
	if l.Version == "" {
		if !hasSystem(l.Name) {
			return l, ErrNoVersion
		}
		l.Version = System
	}
	if !languageName().MatchString(l.Name) {
		return l, errors.New(quote(l.Name) + " is not the name of a language")
	}
	_, err := Parse(Marshal(Recipe{Languages: []Language{l}}))
	if wrong, ok := errors.AsType[Errors](err); ok { // the file name in the error does not matter
		return l, errors.New(wrong[0].Message)
	}
	return l, err
}
