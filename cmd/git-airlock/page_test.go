package main

import (
	"strings"
	"testing"
)

// TestHelpFitsTheTerminal looks at all help texts on terminals of some widths. How a command is typed stays one line.
func TestHelpFitsTheTerminal(t *testing.T) {
	app := newCLI(nil)
	app.Setup()
	top := appPage(app)
	pages := append([]page{top}, top.commands...)
	for _, p := range top.commands {
		pages = append(pages, p.commands...)
	}
	if len(pages) < 15 {
		t.Fatalf("only %d pages", len(pages))
	}
	for _, width := range []int{leastHelpWidth, 79, helpWidth} {
		for _, p := range pages {
			var b strings.Builder
			p.help(&b, width)
			for line := range strings.Lines(b.String()) {
				typed := strings.HasPrefix(line, "   git airlock ") && !strings.Contains(line, " - ") || strings.HasPrefix(line, "   --")
				if len(strings.TrimSuffix(line, "\n")) > width && !typed {
					t.Errorf("%s in %d columns: %q", p.name, width, line)
				}
			}
		}
	}
}
