package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/promote/policy"
)

// TestDocumentsAreShort bounds the length of README.md and DESIGN.md. Details belong in the manual and in package documentation.
func TestDocumentsAreShort(t *testing.T) {
	for name, most := range map[string]int{"README.md": 180, "DESIGN.md": 300} {
		text := read(t, filepath.Join("../..", name))
		if lines := bytes.Count(text, []byte("\n")); lines > most {
			t.Errorf("%s has %d lines; at most %d", name, lines, most)
		}
	}
}

// TestReadmeLinks checks that the files, scripts and manual pages exist that the README names.
func TestReadmeLinks(t *testing.T) {
	text := string(read(t, "../../README.md"))
	for _, m := range regexp.MustCompile(`\]\(([^)]+)\)|(scripts/[a-z-]+)`).FindAllStringSubmatch(text, -1) {
		target := m[1] + m[2]
		if strings.HasPrefix(target, "https://") {
			continue
		}
		if _, err := os.Stat(filepath.Join("../..", target)); err != nil {
			t.Errorf("README.md points to %s: %v", target, err)
		}
	}
	book := manualOf(cmdline.ProgramPage(newProgram()))
	pages, named := book.Pages(), map[string]bool{}
	for _, a := range book.Agents { // one is named for all
		named["git-airlock-"+a.Word+".7"] = true
	}
	for _, m := range regexp.MustCompile(`(git-airlock[a-z-]*)\(([17])\)`).FindAllStringSubmatch(text, -1) {
		named[m[1]+"."+m[2]] = true
		if pages[m[1]+"."+m[2]] == "" {
			t.Errorf("README.md names %s, which the manual does not have", m[0])
		}
	}
	for page := range pages {
		if strings.HasSuffix(page, ".7") && !named[page] {
			t.Errorf("README.md does not name the page %s", page)
		}
	}
}

// TestMarkdownManual checks that the Markdown manual has the same pages, explains each rule, and has no dead links.
func TestMarkdownManual(t *testing.T) {
	book := manualOf(cmdline.ProgramPage(newProgram()))
	pages := book.Markdown()
	if len(pages) != len(book.Pages()) {
		t.Errorf("%d pages of Markdown, %d of troff", len(pages), len(book.Pages()))
	}
	for name, text := range pages {
		for _, m := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(text, -1) {
			if pages[m[1]] == "" {
				t.Errorf("%s has a link to %s", name, m[1])
			}
		}
	}
	for _, d := range policy.Rules() {
		if !strings.Contains(pages["git-airlock-policy.md"], "- `"+d.ID+"`: ") {
			t.Errorf("the page on the policy does not explain the rule %s", d.ID)
		}
	}
}
