package main

import (
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/manual"
)

// TestHelpFitsTheTerminal checks all help texts on terminals of several widths. Each synopsis stays on one line.
func TestHelpFitsTheTerminal(t *testing.T) {
	app := newProgram()
	app.Setup()
	top := cmdline.ProgramPage(app)
	pages := append([]manual.Page{top}, top.Commands...)
	for _, p := range top.Commands {
		pages = append(pages, p.Commands...)
	}
	if len(pages) < 15 {
		t.Fatalf("only %d pages", len(pages))
	}
	for _, width := range []int{manual.LeastHelpWidth, 79, manual.HelpWidth} {
		for _, p := range pages {
			var b strings.Builder
			p.Help(&b, width)
			for line := range strings.Lines(b.String()) {
				typed := strings.HasPrefix(line, "   git airlock ") && !strings.Contains(line, " - ") || strings.HasPrefix(line, "   --")
				if len(strings.TrimSuffix(line, "\n")) > width && !typed {
					t.Errorf("%s in %d columns: %q", p.Name, width, line)
				}
			}
		}
	}
}
