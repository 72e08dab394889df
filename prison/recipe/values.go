package recipe

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/words"
)

const (
	maxList    = 500      // entries of a list
	maxCommand = 16 << 10 // bytes of a command
	maxValue   = 32 << 10 // bytes of a variable's value
)

var (
	bareKey   = lazily(`^[A-Za-z0-9_-]{1,80}$`)
	imageName = lazily(`^([A-Za-z0-9]+((\.|-+)[A-Za-z0-9]+)*(:[0-9]+)?/)?` + // a registry
		`[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*(/[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*)*` +
		`(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64}|@sha512:[0-9a-f]{128})?$`)
	packageName  = lazily(`^[a-z0-9][a-z0-9+.-]{1,99}(=[A-Za-z0-9][A-Za-z0-9.+:~-]{0,99})?$`)
	languageName = lazily(`^[a-z][a-z0-9_-]{0,63}$`)
	versionText  = lazily(`^v?[0-9][0-9A-Za-z._+-]{0,63}$`)
)

// isImageName reports whether an engine accepts the name of an image.
func isImageName(name string) bool { return len(name) <= 255 && imageName().MatchString(name) }

// variableName reports whether a variable of this name can be set in a prison.
func variableName(name string) bool { return len(name) <= 255 && prison.IsVariableName(name) }

// lazily compiles an expression when it is first used. Most commands use none, and the processes that keep a prison
// running would hold the compiled expression in memory all that time.
func lazily(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

func (t table) os() (o OS) {
	t.only("base", "packages", "dockerfile")
	var hasBase, hasFile bool
	if o.Base, hasBase = t.text("base"); hasBase && !isImageName(o.Base) {
		t.errorf("base", "%s is not the name of a container image, such as %q", quote(o.Base), defaultBase)
	}
	o.Packages = words.Unique(t.texts("packages", `the name of a Debian package, such as "make" or "make=4.3-4.1"`, packageName().MatchString))
	if o.Dockerfile, hasFile = t.text("dockerfile"); hasFile && !inRepository(o.Dockerfile) {
		t.errorf("dockerfile", "%s is not the path of a file in the repository, from its top", quote(o.Dockerfile))
	}
	if hasBase && hasFile {
		t.errorf("dockerfile", "there is a base as well; one of the two is what to start from")
	}
	return o
}

// inRepository reports whether a path can be the path of a file in a repository.
func inRepository(p string) bool {
	plain := utf8.ValidString(p) && !strings.ContainsFunc(p, func(c rune) bool { return c == '\\' || !unicode.IsPrint(c) })
	return plain && p != "" && p != "." && len(p) < 4096 && p[0] != '/' && p[0] != '-' && path.Clean(p) == p &&
		p != ".." && !strings.HasPrefix(p, "../") && !slices.Contains(strings.Split(strings.ToLower(p), "/"), ".git")
}

func (t table) language(name string) (l Language) {
	l.Name = name
	if !t.knows(name) {
		return l
	}
	own, ok := t.table(name)
	if !ok {
		return l
	}
	own.only("version", "manager", "distribution")
	l.Version = own.version(name)
	l.Manager = own.manager(name)
	l.Distribution = own.distribution(name, l.Version)
	return l
}

// knows returns false for a name that is certainly wrong, and adds the mistake. It accepts all others, because mise knows hundreds of
// languages.
func (t table) knows(name string) bool {
	if !languageName().MatchString(name) {
		t.errorf(name, "that is not the name of a language")
		return false
	}
	if _, ok := languages[name]; ok {
		return true
	}
	for _, right := range KnownLanguages() {
		if slices.Contains(languages[right].aliases, name) {
			t.errorf(name, "its name here is %q", right)
			return false
		}
	}
	// Names of two letters are close to every word.
	if meant := Nearest(name, KnownLanguages()); len(name) > 2 && len(meant) > 2 {
		t.errorf(name, "unknown language; did you mean %q?", meant)
		return false
	}
	return true
}

func (t table) version(language string) string {
	if t.values["version"] == nil {
		t.errorf("version", `is missing: give an exact one such as "1.2.3", or %q`, System)
		return ""
	}
	v, ok := t.text("version")
	switch {
	case !ok:
	case v == System && !hasSystem(language):
		t.errorf("version", "no package of Debian is known for %s: give an exact version", language)
	case v != System && !versionText().MatchString(v):
		t.errorf("version", `%s is not an exact version: give one such as "1.2.3", or %q for the distribution's`, quote(v), System)
	}
	return v
}

func (t table) manager(language string) string {
	m, ok := t.text("manager")
	if !ok {
		return ""
	}
	choice := Managers(language)
	name, version, versioned := strings.Cut(m, "@")
	switch {
	case len(choice) == 0:
		t.errorf("manager", "%s has no managers to choose from: leave it out", language)
	case !slices.Contains(choice, name):
		message := "is not one of " + strings.Join(choice, ", ")
		if meant := Nearest(name, choice); meant != "" {
			message += "; did you mean " + meant + "?"
		}
		t.errorf("manager", "%s %s", quote(name), message)
	case versioned && !versionText().MatchString(version):
		t.errorf("manager", "%s is not an exact version of %s", quote(version), name)
	case versioned && name == languages[language].managers[0]:
		t.errorf("manager", "%s comes with %s: it has no version of its own", name, language)
	}
	return m
}

func (t table) distribution(language, version string) string {
	d, ok := t.text("distribution")
	switch {
	case !ok:
	case language != "java":
		t.errorf("distribution", "only java has distributions")
	case version == System:
		t.errorf("distribution", "with version %q it is Debian's own", System)
	case !slices.Contains(distributions, d):
		t.errorf("distribution", "%s is not one of %s", quote(d), strings.Join(distributions, ", "))
	}
	return d
}

// commands reads [startup] or [prestart].
func (t table) commands(key string) []string {
	own, ok := t.table(key)
	if !ok {
		return nil
	}
	own.only("commands")
	return own.texts("commands", "a command", func(s string) bool {
		return strings.TrimSpace(s) != "" && len(s) <= maxCommand && !strings.Contains(s, "\x00")
	})
}

// fixed are the variables that every environment sets itself.
var fixed = []string{"HOME", "USER", "LOGNAME", "SHELL", "PATH", "PWD", "TMPDIR"}

func (t table) env() (e Env) {
	t.only("pass", "set")
	e.Pass = words.Unique(t.texts("pass", "the name of a variable", variableName))
	for _, name := range e.Pass {
		if slices.Contains(fixed, name) {
			t.errorf("pass", "%s belongs to the environment itself", name)
		}
	}
	set, ok := t.table("set")
	if !ok {
		return e
	}
	e.Set = map[string]string{}
	for name := range set.values {
		value, ok := set.text(name)
		switch {
		case !ok:
		case !variableName(name):
			set.errorf(name, "that is not the name of a variable")
		case slices.Contains(fixed, name):
			set.errorf(name, "belongs to the environment itself")
		case slices.Contains(e.Pass, name):
			set.errorf(name, "is passed as well: choose one of the two")
		case len(value) > maxValue || strings.Contains(value, "\x00"):
			set.errorf(name, "the value is too long or contains a zero byte")
		}
		e.Set[name] = value
	}
	return e
}
