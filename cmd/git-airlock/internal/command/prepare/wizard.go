package prepare

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/prison/recipe"
	"github.com/git-airlock/git-airlock/promote"
)

// errUnanswered reports that the input ended before all questions were answered.
var errUnanswered = errors.New("there was no answer, and no file was changed")

// wizard asks the questions that no option of init has answered.
type wizard struct {
	session *session.Session
	message io.Writer
	options *cli.Context
	in      *bufio.Reader
}

// ask completes a plan. Each question shows its default.
func (w wizard) ask(p *initPlan) error {
	ui.Say(w.message, "an empty answer takes the default in brackets; ^C ends without changing a file")
	for _, q := range []struct {
		option string
		ask    func(*initPlan) error
	}{
		{"language", w.languages}, {"agent", w.agents}, {"package", w.packages}, {"startup", w.startup}, {"pass", w.pass}, {"backend", w.backendToUse}, {"show-notes", w.showNotes},
	} {
		if w.options.IsSet(q.option) {
			continue
		}
		if err := q.ask(p); err != nil {
			return err
		}
	}
	return nil
}

// line asks a question until the answer is valid.
func (w wizard) line(question, otherwise string, valid func(answer string) error) error {
	for {
		fmt.Fprintf(w.message, "airlock: %s [%s] ", question, otherwise)
		answer, err := ui.ReadAnswer(w.options.Context, w.in)
		switch {
		case errors.Is(err, io.EOF):
			fmt.Fprintln(w.message)
			return errUnanswered
		case err != nil:
			return err
		}
		if answer = strings.TrimSpace(answer); answer == "" {
			return nil
		}
		wrong := valid(answer)
		if wrong == nil {
			return nil
		}
		ui.Say(w.message, "%s", wrong)
	}
}

// words asks for words. "-" means none.
func (w wizard) words(question string, now []string, take func(words []string) error) error {
	return w.line(question, cmp.Or(strings.Join(now, " "), "none"), func(answer string) error {
		if answer == "-" || answer == "none" {
			answer = ""
		}
		return take(strings.Fields(answer))
	})
}

func (w wizard) languages(p *initPlan) error {
	var now []string
	for _, l := range p.recipe.Languages {
		now = append(now, spelled(l))
	}
	return w.words("languages, as NAME or NAME=VERSION", now, func(words []string) error {
		var all []recipe.Language
		for _, word := range words {
			l, err := recipe.ParseLanguage(word)
			if err != nil {
				return fmt.Errorf("%s: %w", word, err)
			}
			all = append(all, l)
		}
		p.recipe.Languages = all
		return nil
	})
}

// agents asks for the agents of images. Those of this machine are named, but are not the default, because the recipe is everybody's.
func (w wizard) agents(p *initPlan) error {
	question := "coding agents for images, as NAME=VERSION"
	if names := found(); len(names) > 0 {
		question += ", or as NAME for the version of this machine: " + strings.Join(names, ", ")
	}
	return w.words(question, nil, func(words []string) error {
		all, err := agentsFor(words)
		if err == nil {
			err = checkRecipe(recipe.Recipe{Agents: all})
		}
		if err != nil {
			return err
		}
		p.recipe.Agents = all
		return nil
	})
}

// spelled formats a language as ParseLanguage reads it.
func spelled(l recipe.Language) string {
	text := l.Name + "=" + l.Version
	if l.Manager != "" {
		text += ",manager=" + l.Manager
	}
	if l.Distribution != "" {
		text += ",distribution=" + l.Distribution
	}
	return text
}

func (w wizard) packages(p *initPlan) error {
	return w.words("Debian packages", nil, func(words []string) error {
		if err := checkRecipe(recipe.Recipe{OS: recipe.OS{Packages: words}}); err != nil {
			return err
		}
		p.recipe.OS.Packages = words
		return nil
	})
}

func (w wizard) startup(p *initPlan) error {
	for n := 1; ; n++ {
		done := true
		err := w.line(fmt.Sprintf("command %d to run at the first start", n), "no more", func(answer string) error {
			commands := append(slices.Clone(p.recipe.Startup), answer)
			if err := checkRecipe(recipe.Recipe{Startup: commands}); err != nil {
				return err
			}
			p.recipe.Startup, done = commands, false
			return nil
		})
		if err != nil || done {
			return err
		}
	}
}

func (w wizard) pass(p *initPlan) error {
	return w.words("names of your variables to pass to the agent, such as API_KEY", nil, func(words []string) error {
		if err := checkRecipe(recipe.Recipe{Env: recipe.Env{Pass: words}}); err != nil {
			return err
		}
		p.recipe.Env.Pass = words
		return nil
	})
}

func (w wizard) backendToUse(p *initPlan) error {
	now := w.session.Config.String("airlock.backend", "auto")
	return w.line("how the prison is made: auto, native or docker", now, func(answer string) error {
		if !prisons.IsBackend(answer) {
			return fmt.Errorf("%q is not one of them", answer)
		}
		if answer != now {
			p.settings = append(p.settings, [2]string{"airlock.backend", answer})
		}
		return nil
	})
}

func (w wizard) showNotes(p *initPlan) error {
	refs, err := w.session.Repo.Values(w.options.Context, displayRefKey)
	if err != nil || slices.Contains(refs, promote.NotesRef) {
		return err
	}
	return w.line("let git log show the notes on the origin of landed commits? y or n", "n", func(answer string) error {
		switch strings.ToLower(answer) {
		case "y", "yes":
			p.notes = true
		case "n", "no":
		default:
			return errors.New("answer y or n")
		}
		return nil
	})
}
