package ui

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/git-airlock/git-airlock/gitops"
)

// Messages is where messages go. Hints are advice as git's own: advice.airlock=false turns them off, and color.advice
// colours them.
type Messages struct {
	io.Writer
	config func() gitops.Config // of the place we stand in, read once somebody asks
	screen io.Writer            // where it is seen in the end
}

// NewMessages returns messages on w. config reads the configuration that decides on hints and colours.
func NewMessages(w io.Writer, config func() gitops.Config) *Messages {
	return &Messages{Writer: w, config: sync.OnceValue(config), screen: w}
}

// Say prints one message in the program's voice.
func Say(w io.Writer, format string, args ...any) {
	fmt.Fprintf(w, "airlock: "+format+"\n", args...)
}

// Hint prints what to type next, unless the user has had enough of hints.
func Hint(w io.Writer, texts ...string) {
	if len(texts) == 0 {
		return
	}
	var p Paint
	if v, ok := w.(*Messages); ok {
		config := v.config()
		if advises, err := config.Bool("advice.airlock", true); err == nil && !advises || Variable("GIT_ADVICE") == "0" {
			return
		}
		p = Paint(WantsColour(config, v.screen, "color.advice", "color.ui"))
	}
	for _, text := range texts {
		fmt.Fprintln(w, p.Yellow("hint: "+text))
	}
}

// WantsColour reports whether text for w must be coloured, by the first of some settings that is set. A
// setting that cannot be read is none: no message is worth failing for a colour.
func WantsColour(config gitops.Config, w io.Writer, keys ...string) bool {
	when, err := config.Colour(keys...)
	switch {
	case err != nil || when == gitops.ColourNever:
		return false
	case when == gitops.ColourAlways:
		return true
	case Variable("NO_COLOR") != "" || Variable("TERM") == "dumb":
		return false
	}
	return IsTerminal(w) || w == Stdout && pagerInUse(config)
}

// pagerInUse reports whether git has put a pager that shows colours behind our standard output ("git -p airlock",
// pager.airlock).
func pagerInUse(config gitops.Config) bool {
	shows, err := config.Bool("color.pager", true)
	inUse := gitops.Config{"in.use": Variable("GIT_PAGER_IN_USE")}
	used, usedErr := inUse.Bool("in.use", false)
	return err == nil && usedErr == nil && shows && used
}

// IsTerminal reports whether w is a terminal in the end.
func IsTerminal(w io.Writer) bool {
	if v, ok := w.(*Messages); ok {
		w = v.Writer
	}
	if o, ok := w.(*Output); ok {
		w = o.File
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Paint colours words, where it is true, in the colours that git gives its own by default.
type Paint bool

// In colours a text by a code of ECMA-48, unless there is nothing to see in it.
func (p Paint) In(code, text string) string {
	if !p || strings.TrimSpace(text) == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[m"
}

// Bold makes a text bold.
func (p Paint) Bold(text string) string { return p.In("1", text) }

// Red colours a text red.
func (p Paint) Red(text string) string { return p.In("31", text) }

// Green colours a text green.
func (p Paint) Green(text string) string { return p.In("32", text) }

// Yellow colours a text yellow.
func (p Paint) Yellow(text string) string { return p.In("33", text) }
