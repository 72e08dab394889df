package manual

import (
	"embed"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

//go:embed completion/*
var completionScripts embed.FS

// completionFiles maps each shell to its script, which has the file name that the shell searches for.
var completionFiles = map[string]string{"bash": "git-airlock", "zsh": "_git-airlock", "fish": "git-airlock.fish"}

// CompletionScript returns the completion script for a shell: bash, zsh or fish.
func CompletionScript(shell string) (script []byte, ok bool) {
	script, err := completionScripts.ReadFile("completion/" + completionFiles[shell])
	return script, err == nil
}

// Requests to the shell to complete files and the like itself.
const (
	shellFiles    = ":files"
	shellFolders  = ":folders"
	shellPrograms = ":programs"
	shellGitLog   = ":gitlog"
)

// Candidate is a possible completion of a word, with its description.
type Candidate struct{ Text, About string }

// Offered has the candidates that only the program can compute: those for each placeholder of a value in the help, those for
// "language" and "log", and the package managers of a language.
type Offered struct {
	Values   map[string]func() []Candidate
	Managers func(language string) []string
}

// Complete prints the completions of the last word after the program's name: one a line, with a tab and a description.
func Complete(out io.Writer, program Page, from Offered, words []string) {
	(&offer{out: out, from: from}).complete(program, words)
}

// offer prints the candidates for one word.
type offer struct {
	out  io.Writer
	from Offered
	word string // the typed part of the word
	stem string // the part of the word before the completed part

	arguments []string // of the command, before the word
}

func (e *offer) candidate(text, about string) {
	if strings.HasPrefix(text, e.word) && !slices.Contains(e.arguments, text) {
		fmt.Fprintf(e.out, "%s%s\t%s\n", e.stem, text, about)
	}
}

func (e *offer) shell(what string) { fmt.Fprintln(e.out, what) }

// complete offers completions of the last word after a command.
func (e *offer) complete(p Page, words []string) {
	last := len(words) - 1
	e.word = words[last]
	var takes *Option // the option that needs a value, if the previous word is one
	for i, w := range words[:last] {
		name, _, valued := strings.Cut(w, "=")
		switch {
		case takes != nil:
			takes = nil
		case w == "--":
			e.inside(p, last-i)
			return
		case strings.HasPrefix(w, "-"):
			if o := p.Option(name); o != nil && o.Value != "" && !valued {
				takes = o
			}
		case len(p.Commands) > 0:
			sub := slices.IndexFunc(p.Commands, func(c Page) bool { return c.Name == p.Name+" "+w })
			if sub < 0 {
				e.unlisted(w, p)
				return
			}
			p = p.Commands[sub]
			if p.Name == "git airlock log" {
				e.log(words[i+1 : last])
				return
			}
		default:
			e.arguments = append(e.arguments, w)
		}
	}
	name, value, valued := strings.Cut(e.word, "=")
	switch o := p.Option(name); {
	case takes != nil:
		e.value(*takes)
	case valued && o != nil && o.Value != "":
		e.word, e.stem = value, name+"="
		e.value(*o)
	case strings.HasPrefix(e.word, "-"):
		e.options(p)
	default:
		for _, c := range p.Commands {
			e.candidate(c.Name[len(p.Name)+1:], c.Summary)
		}
		e.argument(p)
	}
}

// argument offers values for the next argument of a command, as each line of its synopsis has it.
func (e *offer) argument(p Page) {
	if len(p.Commands) > 0 {
		return
	}
	seen := map[string]bool{}
	for _, line := range p.Synopsis {
		word := e.argumentAt(len(e.arguments), strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), p.Name)))
		if !seen[word] {
			e.all(word)
		}
		seen[word] = true
	}
}

// argumentAt returns the word of a synopsis for an argument, counted from 0. Options and their values are not arguments. A word with "..." is
// also for the arguments after it.
func (e *offer) argumentAt(n int, synopsis []string) string {
	ofOption := false
	for _, word := range synopsis {
		option := strings.HasPrefix(strings.TrimLeft(word, "[("), "-")
		argument := !option && !ofOption && word != "|"
		switch {
		case argument && n > 0 && !strings.Contains(word, "..."):
			n--
		case argument && e.from.Values[word] == nil:
			return strings.Trim(word, "[].")
		case argument:
			return word
		}
		ofOption = option && !strings.HasSuffix(word, "]")
	}
	return ""
}

// unlisted completes the word after a hidden command.
func (e *offer) unlisted(command string, p Page) {
	switch command {
	case "help":
		for _, c := range p.Commands {
			e.candidate(c.Name[len(p.Name)+1:], c.Summary)
		}
		for _, name := range (Book{Program: p}).topicPages() {
			summary, _, _ := strings.Cut(strings.TrimPrefix(topic(name), "# "), "\n")
			e.candidate(name, summary)
		}
	case "completion":
		for _, shell := range slices.Sorted(maps.Keys(completionFiles)) {
			e.candidate(shell, "")
		}
	}
}

// inside completes the words after "--": a command for the prison and its arguments, or paths.
func (e *offer) inside(p Page, nth int) {
	synopsis := strings.Join(p.Synopsis, " ")
	command := strings.Contains(synopsis, "-- COMMAND")
	if command && nth == 1 {
		e.shell(shellPrograms)
	}
	if command || strings.Contains(synopsis, "-- PATH") {
		e.shell(shellFiles)
	}
}

func (e *offer) log(before []string) {
	if len(before) > 0 && before[0] == "--ops" {
		e.candidate("--json", "")
		e.candidate("--help", "")
		return
	}
	e.all("log")
	e.shell(shellGitLog)
}

func (e *offer) options(p Page) {
	for _, o := range p.Options {
		for _, name := range o.Names {
			if o.Value != "" && strings.HasPrefix(name, "--") {
				name += "="
			}
			e.candidate(name, o.Text)
		}
	}
	if strings.Contains(strings.Join(p.Synopsis, " "), "-- COMMAND") {
		e.candidate("--", "a command for the prison follows")
	}
}

// value offers values of an option, according to the placeholder in its help.
func (e *offer) value(o Option) {
	for _, choice := range o.choices() {
		e.candidate(choice, "")
	}
	switch o.Value {
	case "NAME[=VERSION][,manager=NAME]":
		e.languages()
	case "LIST": // of words with commas between them
		done := strings.LastIndexByte(e.word, ',') + 1
		e.stem, e.word = e.stem+e.word[:done], e.word[done:]
		e.all(o.Value)
	case "[NAME=]PATH":
		if i := strings.Index(e.word, "="); i >= 0 {
			e.stem, e.word = e.stem+e.word[:i+1], e.word[i+1:]
		}
		e.shell(shellFiles)
	case "pattern":
		e.shell(shellFiles)
	case "folder", "DIRECTORY":
		e.shell(shellFolders)
	case "command":
		e.shell(shellPrograms)
	default:
		e.all(o.Value)
	}
}

// all offers the candidates of a placeholder.
func (e *offer) all(value string) {
	if candidates := e.from.Values[value]; candidates != nil {
		for _, c := range candidates() {
			e.candidate(c.Text, c.About)
		}
	}
}

// languages offers the languages that recipes support best, and then the package managers of the chosen language.
func (e *offer) languages() {
	chosen, rest, more := strings.Cut(e.word, ",")
	if !more {
		e.all("language")
		return
	}
	name, _, _ := strings.Cut(chosen, "=")
	e.stem, e.word = e.stem+chosen+",", rest
	for _, manager := range e.from.Managers(name) {
		e.candidate("manager="+manager, "")
	}
}
