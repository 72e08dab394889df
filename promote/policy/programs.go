package policy

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/git-airlock/git-airlock/gitops"
)

// programs are what a user's configuration makes git execute.
type programs struct {
	files   []program
	drivers map[string]bool // "filter.x", "diff.x", "merge.x", as attributes name them
	kinds   map[string]bool // of those: "filter", "diff", "merge"
}

// program is a path of the tree that a setting names.
type program struct {
	key    string
	path   string // as file systems see it
	folder bool   // what is below counts as well
}

// concerns tells whether a changed path is the program, or has taken the place of a folder above it.
func (p program) concerns(changed string) bool {
	changed = same(changed)
	return changed == p.path || below(p.path, changed) || p.folder && below(changed, p.path)
}

// patterns of settings, git-config(1).
type patterns struct {
	command *regexp.Regexp // whose value is a command line
	path    *regexp.Regexp // that name a file or folder that git obeys
	driver  *regexp.Regexp // of a driver, which is the first group
	word    *regexp.Regexp // in a command line
}

// settingPatterns compiles them when they are needed, which is in few commands.
var settingPatterns = sync.OnceValue(func() patterns {
	return patterns{
		command: regexp.MustCompile(`^(?:` + strings.Join([]string{
			`core\.(?:fsmonitor|editor|pager|sshcommand|askpass|gitproxy|alternaterefscommand)`,
			`sequence\.editor`, `pager\..+`, `interactive\.difffilter`,
			`filter\..+\.(?:clean|smudge|process)`,
			`diff\.external`, `diff\..+\.(?:command|textconv)`, `merge\..+\.driver`,
			`(?:difftool|mergetool|guitool|man|browser)\..+\.(?:cmd|path)`,
			`gpg\.(?:.+\.)?(?:program|defaultkeycommand)`, `credential\.(?:.+\.)?helper`,
			`trailer\..+\.(?:command|cmd)`, `uploadpack\.packobjectshook`, `hook\..+\.command`,
			`remote\..+\.(?:uploadpack|receivepack)`, `sendemail\.(?:.+\.)?(?:tocmd|cccmd|headercmd|smtpserver|sendmailcmd)`,
			`alias\..+`, `submodule\..+\.update`, `imap\.tunnel`,
		}, "|") + `)$`),
		path:   regexp.MustCompile(`^(?:core\.(?:hookspath|attributesfile)|init\.templatedir|include\.path|includeif\..+\.path)$`),
		driver: regexp.MustCompile(`^((?:filter|diff|merge)\..+)\.(?:clean|smudge|process|command|textconv|driver)$`),
		word:   regexp.MustCompile("[^\\s;|&()<>\"'`=$]+"),
	}
})

// homeVariable puts a tilde in the place of the variable that a shell has for it.
var homeVariable = strings.NewReplacer("$HOME/", "~/", "${HOME}/", "~/")

// readPrograms reads a configuration. top is the work tree, in which git runs commands.
func readPrograms(c gitops.Config, top string) programs {
	p, match := programs{drivers: map[string]bool{}, kinds: map[string]bool{}}, settingPatterns()
	for key, value := range c.All() {
		if m := match.driver.FindStringSubmatch(key); m != nil {
			kind, _, _ := strings.Cut(m[1], ".")
			p.drivers[m[1]], p.kinds[kind] = true, true
		}
		switch {
		case match.path.MatchString(key):
			p.add(key, configuredPath(key, value), top, true)
		case strings.HasPrefix(key, "alias.") && !strings.HasPrefix(value, "!"):
		case match.command.MatchString(key):
			for _, word := range match.word.FindAllString(homeVariable.Replace(value), -1) {
				if strings.Contains(value, "--show-toplevel") {
					word = strings.TrimPrefix(word, "/") // "$(git rev-parse --show-toplevel)/tools/x"
				}
				p.add(key, strings.TrimPrefix(word, "!"), top, false)
			}
		}
	}
	slices.SortFunc(p.files, func(a, b program) int { return strings.Compare(a.key+"\x00"+a.path, b.key+"\x00"+b.path) })
	return p
}

// configuredPath is a file or folder as seen from the work tree. Included files are named as seen from the file that
// includes them, which is the repository's own: another one is no part of the work tree. Husky puts what git is
// told to run into a folder of its own, from where the scripts beside it are called.
func configuredPath(key, value string) string {
	if strings.HasPrefix(key, "include") && !filepath.IsAbs(value) {
		return path.Join(".git", value)
	}
	if key == "core.hookspath" {
		return strings.TrimSuffix(strings.TrimSuffix(value, "/"), "/_")
	}
	return value
}

// fromHome is a path with the home in the place of a tilde, as git and shells read it.
func fromHome(name string) string {
	rest, tilde := strings.CutPrefix(name, "~/")
	if home, err := os.UserHomeDir(); tilde && err == nil {
		return filepath.Join(home, rest)
	}
	return name
}

// resolved is an absolute path as git names it: links on the way are followed, as far as there is a way yet.
func resolved(name string) string {
	name = filepath.Clean(name)
	for at, rest := name, ""; at != filepath.Dir(at); at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
	return name
}

// add adds a path if it is one of the work tree.
func (p *programs) add(key, name, top string, folder bool) {
	name = fromHome(name)
	if filepath.IsAbs(name) {
		rel, err := filepath.Rel(top, resolved(name))
		if top == "" || err != nil {
			return
		}
		name = filepath.ToSlash(rel)
	}
	name = path.Clean(name)
	if name == "." || name == ".." || strings.HasPrefix(name, "../") || strings.HasPrefix(name, "-") || below(name, ".git") {
		return
	}
	p.files = append(p.files, program{key, same(name), folder})
}
