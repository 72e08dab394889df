package report

import (
	"fmt"
	"path"
	"strings"

	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/words"
)

// scope is the folders that a command names: the asked area. Files beside a named file belong to it, and everything below a named
// folder.
type scope struct {
	beside, below map[string]bool
	named         []Text // what the command names, once each
}

// scopeOf finds the names of changed files, and of folders with changed files, in the words of a command. A command that names
// none has no scope, and no file is outside of it.
func scopeOf(argv []string, commits []commit) scope {
	s := scope{map[string]bool{}, map[string]bool{}, []Text{}}
	named := wordsOf(argv)
	for _, c := range commits {
		for _, f := range c.files {
			if named[f.path] || named[path.Base(f.path)] && strings.Contains(path.Base(f.path), ".") {
				s.beside[path.Dir(f.path)] = true
				s.named = append(s.named, Text(f.path))
			}
			for dir := path.Dir(f.path); dir != "." && dir != "/"; dir = path.Dir(dir) {
				if named[dir] {
					s.below[dir] = true
					s.named = append(s.named, Text(dir+"/"))
				}
			}
		}
	}
	s.named = append([]Text{}, words.Unique(s.named)...)
	return s
}

// wordsOf returns the words of a command line without punctuation around them.
func wordsOf(argv []string) map[string]bool {
	words := map[string]bool{}
	for _, word := range strings.FieldsFunc(strings.Join(argv, " "), func(r rune) bool { return strings.ContainsRune(" \t\n,;:!?()[]{}<>'\"`=", r) }) {
		words[strings.Trim(strings.TrimRight(strings.TrimPrefix(word, "./"), "./"), "/")] = true
	}
	return words
}

func (s scope) known() bool { return len(s.beside)+len(s.below) > 0 }

func (s scope) outside(file string) bool {
	if !s.known() || s.beside[path.Dir(file)] {
		return false
	}
	for dir := path.Dir(file); dir != "." && dir != "/"; dir = path.Dir(dir) {
		if s.below[dir] {
			return false
		}
	}
	return true
}

// viewCommits returns the commits with their changes.
func (m *material) viewCommits() (all []Commit) {
	for i, c := range m.commits {
		x := Commit{Number: i + 1, Inner: Text(short(c.Inner)), Subject: c.Subject, Time: c.at, Exact: c.exact, State: Text(c.State), Level: Look}
		switch c.State {
		case record.Landed:
			x.ID, x.Level = Text(short(c.Outer)), Good
		case record.Pending:
			x.ID, x.State = Text(short(c.Outer)), "waits"
		case record.Inner:
			x.State = "only in the workspace"
		}
		for _, line := range c.body {
			x.Body = append(x.Body, Text(line))
		}
		for _, f := range c.files {
			x.Files = append(x.Files, File{Text(f.path), f.what, f.added, f.removed, m.area.outside(f.path), f.lines})
			x.Added, x.Removed = x.Added+f.added, x.Removed+f.removed
		}
		switch {
		case !c.found && c.State == record.Pending && c.Outer != "":
			x.LeftOut = Text(fmt.Sprintf("its changes are not in the record: git airlock diff %s", short(c.Outer)))
		case !c.found && c.State != record.Landed:
			x.LeftOut = Text(fmt.Sprintf("its changes are not in the record: git log -p --diff-merges=first-parent ..airlock/%s/pending", m.ID))
		case !m.has[record.ChangesName]:
			x.LeftOut = "its changes are not in the record"
		case !c.found:
			x.LeftOut = "no changes of its own, as of a merge or an empty commit, or they are not in the record"
		case !c.whole:
			x.LeftOut = "its changes cannot be read in the record"
		}
		all = append(all, x)
	}
	return all
}
