package main

import (
	"embed"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

//go:embed completion/*
var completionScripts embed.FS

// completionFiles are the scripts for the shells, by the names that the shells look for.
var completionFiles = map[string]string{"bash": "git-airlock", "zsh": "_git-airlock", "fish": "git-airlock.fish"}

// completionCommand prints a shell's script; what there is to offer, the script asks completeCommand.
func completionCommand() *cli.Command {
	return &cli.Command{
		Name: "completion", Usage: "print the completion for a shell",
		UsageText:       "git airlock completion bash|zsh|fish",
		Description:     exitStatusHelp,
		Hidden:          true,
		HideHelpCommand: true,
		OnUsageError:    onUsageError,
		Action: func(c *cli.Context) error {
			name, ok := completionFiles[c.Args().First()]
			if !ok {
				return usagef("completion: which shell? git airlock completion bash|zsh|fish")
			}
			script, err := completionScripts.ReadFile("completion/" + name)
			if err != nil {
				return err
			}
			_, err = c.App.Writer.Write(script)
			return err
		},
	}
}

// completeCommand offers what the last of some words, those after "git airlock", can become: a line each, with a tab and
// a description. A line that begins with a colon leaves it to the shell to offer files, folders, programs or what git
// log takes. It changes nothing and never complains.
func completeCommand(inside []string) *cli.Command {
	return &cli.Command{
		Name: "complete", Usage: "offer completions of the last word",
		UsageText:       "git airlock complete -- WORD...",
		Description:     exitStatusHelp,
		Hidden:          true,
		HideHelpCommand: true,
		Action: func(c *cli.Context) error {
			if len(inside) > 0 {
				e := &offer{out: c.App.Writer, known: &known{ctx: c.Context}}
				e.complete(appPage(c.App), inside)
			}
			return nil
		},
	}
}

// What a shell is asked to offer by itself.
const (
	shellFiles    = ":files"
	shellFolders  = ":folders"
	shellPrograms = ":programs"
	shellGitLog   = ":gitlog"
)

// offer prints candidates for one word.
type offer struct {
	out   io.Writer
	known *known
	word  string // what there is of it
	stem  string // of the word, what is in front of the part that is completed
}

func (e *offer) candidate(text, about string) {
	if strings.HasPrefix(text, e.word) {
		fmt.Fprintf(e.out, "%s%s\t%s\n", e.stem, text, about)
	}
}

func (e *offer) shell(what string) { fmt.Fprintln(e.out, what) }

// complete offers completions of the last of some words after a command.
func (e *offer) complete(p page, words []string) {
	last := len(words) - 1
	e.word = words[last]
	var takes *option // what the word before waits for
	for i, w := range words[:last] {
		name, _, valued := strings.Cut(w, "=")
		switch {
		case takes != nil:
			takes = nil
		case w == "--":
			e.inside(p, last-i)
			return
		case strings.HasPrefix(w, "-"):
			if o := p.option(name); o != nil && o.value != "" && !valued {
				takes = o
			}
		case len(p.commands) > 0:
			sub := slices.IndexFunc(p.commands, func(c page) bool { return c.name == p.name+" "+w })
			if sub < 0 {
				e.unlisted(w, p)
				return
			}
			p = p.commands[sub]
			if p.name == "git airlock log" {
				e.log()
				return
			}
		}
	}
	name, value, valued := strings.Cut(e.word, "=")
	switch o := p.option(name); {
	case takes != nil:
		e.value(*takes)
	case valued && o != nil && o.value != "":
		e.word, e.stem = value, name+"="
		e.value(*o)
	case strings.HasPrefix(e.word, "-"):
		e.options(p)
	default:
		for _, c := range p.commands {
			e.candidate(c.name[len(p.name)+1:], c.summary)
		}
	}
}

// unlisted is what follows a command that is not listed.
func (e *offer) unlisted(command string, p page) {
	switch command {
	case "help":
		for _, c := range p.commands {
			e.candidate(c.name[len(p.name)+1:], c.summary)
		}
	case "completion":
		for _, shell := range slices.Sorted(maps.Keys(completionFiles)) {
			e.candidate(shell, "")
		}
	}
}

// inside is what comes after "--": a command for the prison, and its arguments.
func (e *offer) inside(p page, nth int) {
	if !strings.Contains(strings.Join(p.synopsis, " "), "-- COMMAND") {
		return
	}
	if nth == 1 {
		e.shell(shellPrograms)
	}
	e.shell(shellFiles)
}

func (e *offer) log() {
	for _, c := range e.known.refs("refs/airlock") {
		e.candidate(c.text, c.about)
	}
	e.shell(shellGitLog)
}

func (e *offer) options(p page) {
	for _, o := range p.options {
		for _, name := range o.names {
			if o.value != "" && strings.HasPrefix(name, "--") {
				name += "="
			}
			e.candidate(name, o.text)
		}
	}
	if strings.Contains(strings.Join(p.synopsis, " "), "-- COMMAND") {
		e.candidate("--", "a command for the prison follows")
	}
}

// option finds an option by its name.
func (p page) option(name string) *option {
	for i, o := range p.options {
		if slices.Contains(o.names, name) {
			return &p.options[i]
		}
	}
	return nil
}
