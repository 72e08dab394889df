package recipe

import (
	"fmt"
	"strings"
	"unicode"
)

// Marshal writes a recipe, with comments for its readers in a repository. [Parse] reads the result as the same
// recipe.
func Marshal(r Recipe) []byte {
	w := &writer{}
	w.line("# The environment to work in: its parts, and the commands that run when it starts.")
	w.line("schema_version = %d", Version)
	w.os(r.OS)
	for _, l := range r.Languages {
		w.language(l)
	}
	w.agents(r.Agents)
	w.commands("prestart", "Services that run in the background, started before the startup commands.", r.Prestart)
	w.commands("startup", "Run one after the other when the environment starts first, and again when they change.", r.Startup)
	w.env(r.Env)
	return []byte(w.String())
}

type writer struct{ strings.Builder }

func (w *writer) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

// table begins a table, with a comment about it.
func (w *writer) table(about, name string) {
	w.line("")
	if about != "" {
		w.line("# %s", about)
	}
	w.line("[%s]", name)
}

func (w *writer) os(o OS) {
	if o.Base == "" && o.Dockerfile == "" && len(o.Packages) == 0 {
		return
	}
	w.table("The system: the container image to start from (or a Dockerfile to build), and Debian packages.", "os")
	w.text("base", o.Base)
	w.text("dockerfile", o.Dockerfile)
	w.texts("packages", o.Packages)
}

func (w *writer) language(l Language) {
	about := "An exact version; \"" + System + "\" is the distribution's own."
	w.table(about, "languages."+l.Name)
	w.text("version", l.Version)
	w.text("manager", l.Manager)
	w.text("distribution", l.Distribution)
}

func (w *writer) agents(agents []Agent) {
	if len(agents) == 0 {
		return
	}
	w.table("Coding agents in the image, each in an exact version.", "agents")
	for _, a := range agents {
		w.text(a.Name, a.Version)
	}
}

func (w *writer) commands(name, about string, commands []string) {
	if len(commands) > 0 {
		w.table(about, name)
		w.texts("commands", commands)
	}
}

func (w *writer) env(e Env) {
	if len(e.Pass) > 0 {
		w.table("Variables of the user who starts the environment, by their names.", "env")
		w.texts("pass", e.Pass)
	}
	if len(e.Set) > 0 {
		w.table("Variables with their values. No secrets: everybody can read this file.", "env.set")
		for _, name := range e.Names() {
			w.line("%s = %s", name, basicString(e.Set[name]))
		}
	}
}

// text writes a value unless it is empty.
func (w *writer) text(key, value string) {
	if value != "" {
		w.line("%s = %s", key, basicString(value))
	}
}

func (w *writer) texts(key string, values []string) {
	switch len(values) {
	case 0:
	case 1:
		w.line("%s = [%s]", key, basicString(values[0]))
	default:
		w.line("%s = [", key)
		for _, v := range values {
			w.line("  %s,", basicString(v))
		}
		w.line("]")
	}
}

// basicString quotes a text as TOML does.
func basicString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c > 0xffff && !unicode.IsPrint(c):
			fmt.Fprintf(&b, `\U%08X`, c)
		case !unicode.IsPrint(c):
			fmt.Fprintf(&b, `\u%04X`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
