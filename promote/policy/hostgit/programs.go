// Package hostgit finds the files of the work tree that the user's own configuration makes git execute, and the files
// from which git on this machine takes settings. It reads the configuration and the places that git reads, and
// follows every link on the way.
package hostgit

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
	"github.com/git-airlock/git-airlock/promote/policy/pathname"
)

// Programs are the programs that a user's configuration makes git execute.
type Programs struct {
	top     string        // the absolute path of the work tree; empty if there is none
	tree    hostenv.Tree  // the work tree
	walk    *hostenv.Walk // as of this reading
	files   []program
	doubts  []doubt
	drivers map[string]bool // "filter.x", "diff.x", "merge.x", as attributes name them
	kinds   map[string]bool // the kinds of drivers: "filter", "diff", "merge"
	// The user's own attribute files. The tree's files take precedence over those below, and those above over the tree's.
	below, above [][]byte
}

// Read finds the files of a work tree that git executes or reads settings from, because of a configuration and the
// host's files. top is the absolute path of the work tree.
func Read(c gitops.Config, h Files, top string) Programs {
	p := readPrograms(c, top)
	p.host(h)
	p.readAttributes(c, h)
	p.walk = nil
	return p
}

// State returns a text that is equal for equal paths and equal attribute files. The paths can change without a setting, when a link changes its
// target.
func (p Programs) State() string { return fmt.Sprint(p.files, p.below, p.above) }

// Attributes returns the contents of the user's own attribute files. The tree's attribute files override the files in below, and the files in
// above override the tree's.
func (p Programs) Attributes() (below, above [][]byte) { return p.below, p.above }

// Reasons returns the reasons why a change may affect a file that git executes. Each reason names a setting. The
// result is empty if there is none.
func (p Programs) Reasons(c gitops.Change) (why []string) {
	for _, f := range p.files {
		if f.concerns(c.Path) {
			why = append(why, f.key+" names it")
			break
		}
	}
	for _, d := range p.doubts {
		if !d.concerns(c) {
			continue
		}
		if d.blind {
			return append(why, "landing it may run "+d.key+", whose command line does not show which files it executes")
		}
		return append(why, d.key+" may run it")
	}
	return why
}

// HasDrivers reports whether the configuration defines drivers.
func (p Programs) HasDrivers() bool { return len(p.drivers) > 0 }

// Drives reports whether an attribute with a value names a driver, as "filter" with "lfs" does.
func (p Programs) Drives(attribute, value string) bool { return p.drivers[attribute+"."+value] }

// DrivesBy reports whether an attribute with some value names a driver.
func (p Programs) DrivesBy(attribute string) bool { return p.kinds[attribute] }

// program is a path of the tree that a setting names.
type program struct {
	key    string
	path   string // in the form of [pathname.Same]
	folder bool   // everything below counts as well
}

// concerns reports whether a changed path is the program, or replaces a folder above it.
func (p program) concerns(changed string) bool {
	changed = pathname.Same(changed)
	return changed == p.path || pathname.Below(p.path, changed) || p.folder && pathname.Below(changed, p.path)
}

// patterns match settings, see git-config(1).
type patterns struct {
	command *regexp.Regexp // settings whose value is a command line
	path    *regexp.Regexp // settings that name a file or folder that git or this program obeys
	address *regexp.Regexp // settings whose value is never a path that git obeys
	source  *regexp.Regexp // settings that name the source of a credential
	driver  *regexp.Regexp // settings of a driver, which is the first group
	word    *regexp.Regexp // words of a command line
}

// settingPatterns compiles the patterns when they are needed, because few commands need them.
var settingPatterns = sync.OnceValue(func() patterns {
	return patterns{
		command: regexp.MustCompile(`^(?:` + strings.Join([]string{
			`core\.(?:fsmonitor|editor|pager|sshcommand|askpass|gitproxy|alternaterefscommand)`,
			`sequence\.editor`, `pager\..+`, `interactive\.difffilter`,
			`filter\..+\.(?:clean|smudge|process)`,
			`diff\.external`, `diff\..+\.(?:command|textconv)`, `merge\..+\.driver`,
			`(?:difftool|mergetool|guitool|man|browser)\..+\.(?:cmd|path)`,
			`gpg\.(?:.+\.)?(?:program|defaultkeycommand)`, `credential\.(?:.+\.)?helper`,
			`trailer\..+\.(?:command|cmd)`, `uploadpack\.packobjectshook`, `gc\.recentobjectshook`, `hook\..+\.command`,
			`remote\..+\.(?:uploadpack|receivepack)`, `sendemail\.(?:.+\.)?(?:tocmd|cccmd|headercmd|smtpserver|sendmailcmd)`,
			`alias\..+`, `submodule\..+\.update`, `imap\.tunnel`, `tar\..+\.command`,
			`lfs\.(?:customtransfer|extension)\..+\.(?:path|args|clean|smudge)`, `web\.browser`, `instaweb\.(?:httpd|browser)`,
		}, "|") + `)$`),
		path: regexp.MustCompile(`^(?:core\.(?:hookspath|attributesfile|excludesfile)|init\.templatedir|include\.path|includeif\..+\.path|` +
			`gpg\.ssh\.(?:allowedsignersfile|revocationfile)|user\.signingkey|mailmap\.file|blame\.ignorerevsfile|commit\.template|` +
			`http\.(?:.+\.)?(?:(?:proxy)?ssl(?:cainfo|capath|cert|key)|cookiefile)|core\.worktree|airlock\.policyfile)$`),
		address: regexp.MustCompile(`^(?:branch\..+|remote\..+\.(?:url|pushurl|fetch|push)|url\..+|submodule\..+\.url|airlock\..+|user\.(?:name|email))$`),
		source:  regexp.MustCompile(`^airlock\.credential\..+\.source$`),
		driver:  regexp.MustCompile(`^((?:filter|diff|merge)\..+)\.(?:clean|smudge|process|command|textconv|driver)$`),
		word:    regexp.MustCompile("[^\\s;|&()<>\"'`=$]+"),
	}
})

// homeVariable replaces the shell's variable for the home by a tilde.
var homeVariable = strings.NewReplacer("$HOME/", "~/", "${HOME}/", "~/")

// readPrograms reads a configuration. top is the work tree, in which git runs commands.
func readPrograms(c gitops.Config, top string) Programs {
	p, match := Programs{top: top, tree: hostenv.NewTree(top), walk: new(hostenv.Walk), drivers: map[string]bool{}, kinds: map[string]bool{}}, settingPatterns()
	for key, value := range c.All() {
		if m := match.driver.FindStringSubmatch(key); m != nil {
			kind, _, _ := strings.Cut(m[1], ".")
			p.drivers[m[1]], p.kinds[kind] = true, true
		}
		line := strings.TrimPrefix(homeVariable.Replace(value), "!")
		if command, ok := transport(key, value); ok {
			p.words(key, command)
			p.doubt(key, command)
			continue
		}
		switch {
		case match.path.MatchString(key):
			p.add(key, configuredPath(key, value), true)
		case match.source.MatchString(key):
			p.source(key, value)
		case match.address.MatchString(key):
		case match.command.MatchString(key):
			if plainAlias(key, value) {
				continue
			}
			p.words(key, line)
			p.doubt(key, line)
		case strings.ContainsRune(value, '/'): // git or a user's program may start the files that an unknown key names
			p.words(key, line)
		}
	}
	slices.SortFunc(p.doubts, func(a, b doubt) int { return strings.Compare(a.key, b.key) })
	slices.SortFunc(p.files, func(a, b program) int { return strings.Compare(a.key+"\x00"+a.path, b.key+"\x00"+b.path) })
	return p
}

// transport returns the command line that git runs for an address ext::COMMAND, see git-remote-ext(1). url.ADDRESS.insteadOf has the
// address in its key. git must be allowed to run it by protocol.ext.allow, or by a variable for one command.
func transport(key, value string) (command string, ok bool) {
	if base, found := strings.CutPrefix(key, "url."); found {
		value = base[:max(0, strings.LastIndexByte(base, '.'))]
	}
	command, ok = strings.CutPrefix(value, "ext::")
	return strings.NewReplacer("%%", "%", "% ", " ").Replace(homeVariable.Replace(command)), ok
}

// source adds the files that a credential's value comes from. If an agent could replace such a file, it could use the service with an account of
// its own.
func (p *Programs) source(key, value string) {
	kind, rest, _ := strings.Cut(value, ":")
	switch kind {
	case "command":
		p.words(key, rest)
		p.doubt(key, rest)
	case "file":
		file, _, _ := strings.Cut(rest, "#")
		p.add(key, file, false)
	}
}

// configuredPath returns a configured file or folder, relative to the work tree. An included file is relative to the
// file that includes it, which is the repository's own configuration here: other files are not part of the work tree.
// Husky makes git use a folder of its own, and calls the scripts in the folder above it.
func configuredPath(key, value string) string {
	if strings.HasPrefix(key, "include") && !filepath.IsAbs(value) {
		return path.Join(".git", value)
	}
	value = hostenv.Pathname(value)
	if key == "core.hookspath" {
		return strings.TrimSuffix(strings.TrimSuffix(value, "/"), "/_")
	}
	return value
}

// absolute returns the absolute path of a file that is named from the top of the work tree.
func (p *Programs) absolute(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.top, name)
}

// plainAlias reports whether a setting is an alias of a git command without an option that makes git run another
// program.
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
func (p *Programs) words(key, value string) {
	alias := strings.HasPrefix(key, "alias.")
	for _, word := range settingPatterns().word.FindAllString(value, -1) {
		if strings.Contains(value, "--show-toplevel") {
			word = strings.TrimPrefix(word, "/") // "$(git rev-parse --show-toplevel)/tools/x"
		}
		if alias && !strings.Contains(value, "/") && !strings.Contains(word, ".") {
			continue // options and names of git's own commands
		}
		p.add(key, word, false)
	}
}

// add adds a path if it is in the work tree, or if it leads through a link in the work tree. If such a link changed,
// the path would lead elsewhere.
func (p *Programs) add(key, name string, folder bool) {
	if p.top == "" || name == "" || strings.HasPrefix(name, "-") {
		return
	}
	steps := p.walk.Steps(p.absolute(hostenv.FromHome(name)))
	inside := p.tree.Inside(steps)
	for n, w := range inside {
		last := n == len(inside)-1 && w.Path == steps[len(steps)-1].Path
		if !last && !w.Link() || w.Rel == "." || pathname.Below(w.Rel, ".git") {
			continue
		}
		found := program{key, pathname.Same(w.Rel), folder || !last} // a link can only have files below it once it is replaced by a folder
		if !slices.Contains(p.files, found) {
			p.files = append(p.files, found)
		}
	}
}
