package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/git-airlock/git-airlock/gitops"
)

// voice is where messages go. Hints are advice as git's own: advice.airlock=false turns them off, and color.advice
// colours them.
type voice struct {
	io.Writer
	config func() gitops.Config // of the place we stand in, read once somebody asks
	screen io.Writer            // where it is seen in the end
}

// keptBack is the same voice with what it says kept back, for who may say it or not.
func keptBack(w io.Writer) (io.Writer, *bytes.Buffer) {
	said := &bytes.Buffer{}
	if v, ok := w.(*voice); ok {
		return &voice{said, v.config, v.screen}, said
	}
	return said, said
}

func newVoice(ctx context.Context, w io.Writer) *voice {
	return &voice{Writer: w, config: sync.OnceValue(func() gitops.Config { return currentConfig(ctx) }), screen: w}
}

// currentConfig is the configuration that git would obey here, in a repository or not; none where it cannot be read.
func currentConfig(ctx context.Context) gitops.Config {
	ctx = context.WithoutCancel(ctx) // one that was interrupted still speaks
	cwd, err := workingFolder()
	if err != nil || insideWorkspace(ctx, cwd) {
		cwd = "/" // what an agent configures is obeyed nowhere
	}
	config, err := gitops.CurrentConfig(ctx, cwd)
	if err != nil {
		return gitops.Config{}
	}
	return config
}

// say prints one message in the program's voice.
func say(w io.Writer, format string, args ...any) {
	fmt.Fprintf(w, "airlock: "+format+"\n", args...)
}

// hint prints what to type next, unless the user has had enough of hints.
func hint(w io.Writer, texts ...string) {
	if len(texts) == 0 {
		return
	}
	var p paint
	if v, ok := w.(*voice); ok {
		config := v.config()
		if advises, err := config.Bool("advice.airlock", true); err == nil && !advises || os.Getenv("GIT_ADVICE") == "0" {
			return
		}
		p = paint(wantsColour(config, v.screen, "color.advice", "color.ui"))
	}
	for _, text := range texts {
		fmt.Fprintln(w, p.yellow("hint: "+text))
	}
}

// wantsColour tells whether what is written to w is to be coloured, by the first of some settings that is set. A
// setting that cannot be read is none: no message is worth failing for a colour.
func wantsColour(config gitops.Config, w io.Writer, keys ...string) bool {
	when, err := config.Colour(keys...)
	switch {
	case err != nil || when == gitops.ColourNever:
		return false
	case when == gitops.ColourAlways:
		return true
	case os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb":
		return false
	}
	return isTerminal(w) || w == stdout && pagerInUse(config)
}

// pagerInUse tells whether git has put a pager that shows colours behind our standard output ("git -p airlock",
// pager.airlock).
func pagerInUse(config gitops.Config) bool {
	shows, err := config.Bool("color.pager", true)
	inUse := gitops.Config{"in.use": os.Getenv("GIT_PAGER_IN_USE")}
	used, usedErr := inUse.Bool("in.use", false)
	return err == nil && usedErr == nil && shows && used
}

func isTerminal(w io.Writer) bool {
	if v, ok := w.(*voice); ok {
		w = v.Writer
	}
	if o, ok := w.(*outlet); ok {
		w = o.File
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// paint colours words, where it is true, in the colours that git gives its own by default.
type paint bool

func (p paint) in(code, text string) string {
	if !p || strings.TrimSpace(text) == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[m"
}

func (p paint) bold(text string) string   { return p.in("1", text) }
func (p paint) red(text string) string    { return p.in("31", text) }
func (p paint) green(text string) string  { return p.in("32", text) }
func (p paint) yellow(text string) string { return p.in("33", text) }
