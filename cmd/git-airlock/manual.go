package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/agents"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/manual"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/policy"
)

// helpCommand prints the same text as -h, or the page on a topic.
func helpCommand() *cli.Command {
	return &cli.Command{
		Name: "help", Usage: "explain a command or a topic",
		UsageText: "git airlock help [COMMAND | TOPIC]",
		Description: "Prints the help of a command, or the manual page on a topic: \"recipe\", \"workflows\", \"colleagues\", or a known\n" +
			"agent such as \"claude\" (see: git airlock agents).",
		Hidden: true,
		Action: func(c *cli.Context) error {
			p, width := cmdline.ProgramPage(c.App), manual.WidthOf(c.App.Writer)
			for _, word := range c.Args().Slice() {
				i := slices.IndexFunc(p.Commands, func(sub manual.Page) bool { return sub.Name == p.Name+" "+word })
				if i >= 0 {
					p = p.Commands[i]
					continue
				}
				if text := manualOf(p).Topic(word, width); text != "" && c.NArg() == 1 {
					_, err := io.WriteString(c.App.Writer, text)
					return err
				}
				return cmdline.NoCommand(p, word)
			}
			p.Help(c.App.Writer, width)
			return nil
		},
	}
}

// manualOf returns the manual of the program.
func manualOf(program manual.Page) manual.Book {
	b := manual.Book{Program: program, Version: versionText(), Date: manualDate()}
	for _, reason := range ledger.Reasons {
		b.Holds = append(b.Holds, string(reason))
	}
	for _, a := range agents.Known() {
		b.Agents = append(b.Agents, manual.Explained{Word: a.Name, Text: a.Page()})
	}
	for _, d := range policy.Rules() {
		text := fmt.Sprintf("%s; default: `%s`", d.Doc, d.Default)
		if d.Key == "" {
			text = d.Doc + "; always holds"
		}
		b.Rules = append(b.Rules, manual.Explained{Word: d.ID, Text: text})
	}
	return b
}

// manualCommand writes the manual; scripts/install, scripts/release and scripts/docs call it.
func manualCommand() *cli.Command {
	return &cli.Command{
		Name: "manual", Usage: "print a page of the manual, or write all of them",
		UsageText: "git airlock manual [--markdown] [PAGE]\ngit airlock manual [--markdown] --dir DIRECTORY",
		Description: "Prints a page in troff, which man -l shows. PAGE is a name such as \"git-airlock-start\" (default: \"git-airlock\").\n" +
			"SOURCE_DATE_EPOCH sets the date of the pages.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "dir", Usage: "write all pages into man1 and man7 in the `DIRECTORY`"},
			&cli.BoolFlag{Name: "markdown", Usage: "write Markdown; with --dir, into the DIRECTORY itself"},
		},
		Hidden: true,
		Action: func(c *cli.Context) error {
			book := manualOf(cmdline.ProgramPage(c.App))
			pages := book.Pages()
			if c.Bool("markdown") {
				pages = book.Markdown()
			}
			if dir := c.String("dir"); dir != "" {
				return writePages(dir, pages)
			}
			name := "git-airlock"
			if c.Args().Present() {
				name = c.Args().First()
			}
			for _, end := range []string{"", ".1", ".7", ".md"} {
				if text, ok := pages[name+end]; ok {
					_, err := io.WriteString(c.App.Writer, text)
					return err
				}
			}
			return ui.Usagef("manual: no page %q", name)
		},
	}
}

// writePages writes pages for man(1) into a folder for each section, and other pages into dir.
func writePages(dir string, pages map[string]string) error {
	for name, text := range pages {
		folder := dir
		if volume := strings.TrimPrefix(filepath.Ext(name), "."); volume != "md" {
			folder = filepath.Join(dir, "man"+volume)
		}
		if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // for all to read
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil { //nolint:gosec // for all to read
			return err
		}
	}
	return nil
}

// manualDate returns the date of the pages: the date of the release, or else of the commit. It is empty if both are unknown.
func manualDate() string {
	if seconds, err := strconv.ParseInt(ui.Variable("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		return time.Unix(seconds, 0).UTC().Format(time.DateOnly)
	}
	if t, err := time.Parse(time.RFC3339, buildSetting("vcs.time")); err == nil {
		return t.UTC().Format(time.DateOnly)
	}
	return ""
}
