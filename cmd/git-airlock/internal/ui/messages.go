package ui

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/term"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/words"
)

// Messages is a writer for messages. Hints work like git's advice: advice.airlock=false turns them off, and color.advice
// colours them.
type Messages struct {
	io.Writer
	read   func() gitops.Config          // reads the configuration of the current folder, once
	known  atomic.Pointer[gitops.Config] // the same, if the command has read it
	screen io.Writer                     // the final destination of the messages
}

// NewMessages returns a Messages that writes to w. config reads the configuration of hints and colours.
func NewMessages(w io.Writer, config func() gitops.Config) *Messages {
	return &Messages{Writer: w, read: sync.OnceValue(config), screen: w}
}

// Know gives the configuration of the current folder to w, if w is a Messages, so that it need not be read again for a hint.
func Know(w io.Writer, config gitops.Config) {
	if m, ok := w.(*Messages); ok {
		m.known.Store(&config)
	}
}

func (m *Messages) config() gitops.Config {
	if known := m.known.Load(); known != nil {
		return *known
	}
	return m.read()
}

// Say prints one message with the prefix "airlock: ". It escapes errors, because an error can quote an agent's text.
func Say(w io.Writer, format string, args ...any) {
	shown := slices.Clone(args)
	for i, arg := range shown {
		if err, ok := arg.(error); ok {
			shown[i] = gitops.Text(words.OneLine(err))
		}
	}
	fmt.Fprintf(w, "airlock: "+format+"\n", shown...)
}

// Hint prints the next commands, unless the user has turned hints off.
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
		p = coloursFor(v.screen, config, "color.advice")
	}
	for _, text := range texts {
		command, comment := words.CutComment(text)
		fmt.Fprintln(w, p.Yellow("hint: "+command))
		if comment != "" {
			fmt.Fprintln(w, p.Yellow("hint:   # "+comment))
		}
	}
}

// coloursFor returns the colours of text for w, according to a setting, or else to color.ui. An unreadable setting means no colour,
// because no message should fail for a colour.
func coloursFor(w io.Writer, config gitops.Config, key string) Paint {
	when, err := config.Colour(key, "color.ui")
	switch {
	case err != nil || when == gitops.ColourNever:
		return false
	case when == gitops.ColourAlways:
		return true
	case Variable("NO_COLOR") != "" || Variable("TERM") == "dumb":
		return false
	}
	return Paint(IsTerminal(w) || w == Stdout && pagerInUse(config))
}

// Colours returns the colours of text for standard output.
func Colours(config gitops.Config) Paint { return coloursFor(Stdout, config, "color.airlock") }

// pagerInUse reports whether git has connected standard output to a pager that shows colours ("git -p airlock",
// pager.airlock).
func pagerInUse(config gitops.Config) bool {
	shows, err := config.Bool("color.pager", true)
	inUse := gitops.Config{"in.use": Variable("GIT_PAGER_IN_USE")}
	used, usedErr := inUse.Bool("in.use", false)
	return err == nil && usedErr == nil && shows && used
}

// IsTerminal reports whether the final destination of w is a terminal.
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

// Paint colours words in git's default colours if it is true.
type Paint bool

// In colours a text with a code of ECMA-48, unless the text is blank.
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
