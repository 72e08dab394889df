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
	"github.com/git-airlock/git-airlock/gitops/hostenv"
)

// programs are what a user's configuration makes git execute.
type programs struct {
	files   []program
	doubts  []doubt
	drivers map[string]bool // "filter.x", "diff.x", "merge.x", as attributes name them
	kinds   map[string]bool // of those: "filter", "diff", "merge"
}

// program is a path of the tree that a setting names.
type program struct {
	key    string
	path   string // as file systems see it
	folder bool   // what is below counts as well
}

// concerns reports whether a changed path is the program, or has taken the place of a folder above it.
func (p program) concerns(changed string) bool {
	changed = same(changed)
	return changed == p.path || below(p.path, changed) || p.folder && below(changed, p.path)
}

// patterns of settings, git-config(1).
type patterns struct {
	command *regexp.Regexp // whose value is a command line
	path    *regexp.Regexp // that name a file or folder that git obeys
	address *regexp.Regexp // whose value is never a path that git obeys
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
			`alias\..+`, `submodule\..+\.update`, `imap\.tunnel`, `tar\..+\.command`,
			`lfs\.(?:customtransfer|extension)\..+\.(?:path|args|clean|smudge)`, `web\.browser`, `instaweb\.(?:httpd|browser)`,
		}, "|") + `)$`),
		path: regexp.MustCompile(`^(?:core\.(?:hookspath|attributesfile|excludesfile)|init\.templatedir|include\.path|includeif\..+\.path|` +
			`gpg\.ssh\.(?:allowedsignersfile|revocationfile)|user\.signingkey|mailmap\.file|blame\.ignorerevsfile|commit\.template|` +
			`http\.(?:.+\.)?(?:ssl(?:cainfo|capath|cert|key)|cookiefile)|core\.worktree)$`),
		address: regexp.MustCompile(`^(?:branch\..+|remote\..+\.(?:url|pushurl|fetch|push)|url\..+|submodule\..+\.url|airlock\..+|user\.(?:name|email))$`),
		driver:  regexp.MustCompile(`^((?:filter|diff|merge)\..+)\.(?:clean|smudge|process|command|textconv|driver)$`),
		word:    regexp.MustCompile("[^\\s;|&()<>\"'`=$]+"),
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
		switch line := strings.TrimPrefix(homeVariable.Replace(value), "!"); {
		case match.path.MatchString(key):
			p.add(key, configuredPath(key, value), top, true)
		case match.address.MatchString(key):
		case match.command.MatchString(key):
			if plainAlias(key, value) {
				continue
			}
			p.words(key, line, top, match)
			p.doubt(key, line, top)
		case strings.ContainsRune(value, '/'): // of a key that is not known: git, or a program of the user's, may start what it names
			p.words(key, line, top, match)
		}
	}
	slices.SortFunc(p.doubts, func(a, b doubt) int { return strings.Compare(a.key, b.key) })
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

// plainAlias reports whether a setting is an alias of a git command that has no option by which git runs something else.
func plainAlias(key, value string) bool {
	if !strings.HasPrefix(key, "alias.") || strings.HasPrefix(value, "!") {
		return false
	}
	return !slices.ContainsFunc(strings.Fields(value), func(word string) bool {
		return slices.Contains([]string{"-c", "-x", "-O", "run", "foreach", "filter-branch"}, word) || strings.HasPrefix(word, "-c") ||
			strings.HasPrefix(word, "--config") || strings.HasPrefix(word, "--ex") || strings.HasPrefix(word, "--open") || strings.HasSuffix(word, "-pack")
	})
}

// words adds the words of a value that may be paths of the tree.
func (p *programs) words(key, value, top string, match patterns) {
	alias := strings.HasPrefix(key, "alias.")
	for _, word := range match.word.FindAllString(value, -1) {
		if strings.Contains(value, "--show-toplevel") {
			word = strings.TrimPrefix(word, "/") // "$(git rev-parse --show-toplevel)/tools/x"
		}
		if alias && !strings.Contains(value, "/") && !strings.Contains(word, ".") {
			continue // the options and names of git's own commands
		}
		p.add(key, word, top, false)
	}
}

// add adds a path if it is one of the work tree, or leads over one of its links: turned, it would lead elsewhere.
func (p *programs) add(key, name, top string, folder bool) {
	if top == "" || name == "" || strings.HasPrefix(name, "-") {
		return
	}
	name = fromHome(name)
	if !filepath.IsAbs(name) {
		name = filepath.Join(top, name)
	}
	steps := hostenv.Steps(name)
	inside := hostenv.NewTree(top).Inside(steps)
	for n, w := range inside {
		last := n == len(inside)-1 && w.Path == steps[len(steps)-1].Path
		if !last && !w.Link() || w.Rel == "." || below(w.Rel, ".git") {
			continue
		}
		found := program{key, same(w.Rel), folder || !last} // below a link there can be files only once it is a folder
		if !slices.Contains(p.files, found) {
			p.files = append(p.files, found)
		}
	}
}
