package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/recipe"
	"github.com/git-airlock/git-airlock/promote"
)

func initCommand(inside []string) *cli.Command {
	return command(&cli.Command{
		Name: "init", Usage: "write down what the agent works with, and your settings",
		UsageText: "git airlock init [--yes] [options]",
		Description: "Looks at the files of the repository, asks on a terminal, and writes " + recipe.FileName + ", " + exampleName + " with the names\n" +
			"of variables, and settings into .git/config. What is there already is added to and never changed. Each\n" +
			"answer is an option, too. It is not needed before \"start\".",
		Flags: initFlags(),
		Action: inRepository(func(c *cli.Context, s *session.Session) error {
			p, err := planInit(c, s)
			if err != nil {
				return err
			}
			if !c.Bool("yes") && !s.Dry && s.Report.CanAsk() {
				if err := newWizard(c, s).ask(&p); err != nil {
					return err
				}
			}
			return initialize(c.Context, s, p)
		}),
	}, inside, false)
}

// initSettings are the options of init that become settings.
var initSettings = []string{"backend", "image", "network", "memory", "cpus", "pids"}

func initFlags() []cli.Flag {
	flags := []cli.Flag{
		&cli.BoolFlag{Name: "yes", Usage: "ask nothing; take what the files of the repository say"},
		&cli.StringSliceFlag{Name: "language", Usage: "`NAME[=VERSION][,manager=NAME]`, in place of those that are found; \"none\" for none"},
		&cli.StringSliceFlag{Name: "package", Usage: "Debian `package` to be there"},
		&cli.StringFlag{Name: "base", Usage: "container `image` that the environment starts from"},
		&cli.StringSliceFlag{Name: "startup", Usage: "`command` to run when the environment starts first"},
		&cli.StringSliceFlag{Name: "pass", Usage: "`name` of a variable of yours that is passed in, if you consent at the start"},
		&cli.StringSliceFlag{Name: "set", Usage: "variable that is no secret, as `NAME=VALUE`"},
		&cli.StringSliceFlag{Name: "exclude", Usage: "leave what matches the `pattern` out of snapshots"},
		&cli.BoolFlag{Name: "show-notes", Usage: "let git log show where landed commits come from"},
	}
	for _, f := range startFlags() {
		if slices.Contains(initSettings, f.Names()[0]) {
			flags = append(flags, f)
		}
	}
	return flags
}

// initPlan is what init is to write.
type initPlan struct {
	recipe   recipe.Recipe
	had      []byte // the recipe that is there, nil for none
	settings [][2]string
	notes    bool
}

// planInit is what the options ask for, and the files of the repository where they are silent.
func planInit(c *cli.Context, s *session.Session) (p initPlan, err error) {
	if _, err := requestOf(c, s, nil); err != nil { // the settings can be read
		return p, err
	}
	for _, name := range initSettings {
		if c.IsSet(name) {
			p.settings = append(p.settings, [2]string{"airlock." + name, c.String(name)})
		}
	}
	if _, wrong, ok := gitops.ParsePatterns(c.StringSlice("exclude")); !ok {
		return p, ui.Usagef("--exclude: %q is no pattern as in gitignore(5)", wrong)
	}
	for _, pattern := range c.StringSlice("exclude") {
		p.settings = append(p.settings, [2]string{session.ExcludeKey, pattern})
	}
	p.notes = c.Bool("show-notes")
	if p.had, err = s.Environment().ReadOwn(recipe.FileName); err != nil {
		return p, err
	}
	var have recipe.Recipe
	if p.had != nil {
		if have, err = recipe.Parse(p.had); err != nil {
			return p, err
		}
	}
	if p.recipe.Languages, err = languagesFor(s, c.StringSlice("language"), have); err != nil {
		return p, err
	}
	p.recipe.OS = recipe.OS{Base: c.String("base"), Packages: c.StringSlice("package")}
	p.recipe.Startup = c.StringSlice("startup")
	p.recipe.Env.Pass = c.StringSlice("pass")
	for _, v := range c.StringSlice("set") {
		name, value, ok := strings.Cut(v, "=")
		if !ok {
			return p, ui.Usagef("--set: %q is not NAME=VALUE", v)
		}
		if p.recipe.Env.Set == nil {
			p.recipe.Env.Set = map[string]string{}
		}
		p.recipe.Env.Set[name] = value
	}
	return p, checkRecipe(p.recipe)
}

// checkRecipe refuses what could not be read again.
func checkRecipe(r recipe.Recipe) error {
	_, err := recipe.Parse(recipe.Marshal(r))
	var wrong recipe.Errors
	if errors.As(err, &wrong) && len(wrong) > 0 {
		return ui.Usagef("%s", wrong[0].Message)
	}
	return err
}

// languagesFor reads the languages that were asked for; without any they are what the repository's files speak for
// and the recipe does not have yet.
func languagesFor(s *session.Session, asked []string, have recipe.Recipe) (all []recipe.Language, err error) {
	for _, text := range asked {
		if text == "none" && len(asked) == 1 {
			return nil, nil
		}
		l, err := recipe.ParseLanguage(text)
		if err != nil {
			return nil, ui.Usagef("--language: %s: %v", text, err)
		}
		all = append(all, l)
	}
	if asked != nil {
		return all, nil
	}
	root, err := os.OpenRoot(s.Repo.Top)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for _, f := range recipe.Detect(root.FS()) {
		switch known := slices.ContainsFunc(have.Languages, func(l recipe.Language) bool { return l.Name == f.Name }); {
		case known:
		case f.Version == "":
			s.Report.Say("%s speaks for %s without a version: --language %s=VERSION", gitops.Escape(f.File), f.Name, f.Name)
		default:
			s.Report.Say("found %s %s (%s)", f.Name, f.Version, gitops.Escape(f.File))
			all = append(all, f.Language)
		}
	}
	return all, nil
}

// initialize writes what was planned.
func initialize(ctx context.Context, s *session.Session, p initPlan) error {
	content, kept, err := p.text()
	if err != nil {
		return err
	}
	written, err := addTo(s, recipe.FileName, p.had, content)
	if err != nil {
		return err
	}
	for _, table := range kept {
		s.Report.Say("%s: [%s] is kept as it is, and says something else than was asked for", recipe.FileName, table)
	}
	full, err := recipe.Parse(content)
	if err != nil {
		return err
	}
	had, err := s.Environment().ReadOwn(exampleName)
	if err != nil {
		return err
	}
	example, err := addTo(s, exampleName, had, withNames(had, full.Env.Pass))
	if err != nil {
		return err
	}
	if err := configure(ctx, s, p); err != nil {
		return err
	}
	return hintAtNext(ctx, s, append(written, example...))
}

// text is the recipe with what was asked for, and the tables that say something else.
func (p initPlan) text() (content []byte, kept []string, err error) {
	if p.had == nil {
		return recipe.Marshal(p.recipe), nil, nil
	}
	content, kept, err = recipe.Merge(p.had, p.recipe)
	if err != nil {
		return nil, nil, &environment.Refusal{Text: err.Error() + "; add it by hand"}
	}
	return content, kept, nil
}

// addTo writes a file, which begins with what it had, and shows what is new. It returns its name if there was something.
func addTo(s *session.Session, name string, had, content []byte) ([]string, error) {
	added := content[len(had):]
	if len(added) == 0 {
		return nil, nil
	}
	word := "wrote"
	switch {
	case s.Dry && had == nil:
		word = "would write"
	case s.Dry:
		word = "would add to"
	case had != nil:
		word = "added to"
	}
	s.Report.Say("%s %s", word, name)
	for line := range bytes.Lines(bytes.Trim(added, "\n")) {
		s.Report.Quote("+ " + string(bytes.TrimRight(line, "\r\n")))
	}
	if s.Dry {
		return []string{name}, nil
	}
	path := filepath.Join(s.Repo.Top, name)
	if had != nil {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		return []string{name}, gitops.WriteFile(path, content, info.Mode().Perm())
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	_, err = file.Write(content)
	return []string{name}, errors.Join(err, file.Close())
}

// exampleName is the file that tells others which variables to set in their own .env.
const exampleName = ".env.example"

// withNames adds the variables that a template of variables lacks, without values.
func withNames(had []byte, names []string) []byte {
	content := slices.Clone(had)
	for _, name := range names {
		if regexp.MustCompile(`(?m)^[ \t]*#?[ \t]*(?:export[ \t]+)?` + regexp.QuoteMeta(name) + `[ \t]*=`).Match(had) {
			continue
		}
		if len(content) > 0 && content[len(content)-1] != '\n' {
			content = append(content, '\n')
		}
		content = append(content, name+"=\n"...)
	}
	return content
}

const displayRefKey = "notes.displayRef"

// configure writes settings that are not so yet.
func configure(ctx context.Context, s *session.Session, p initPlan) error {
	set := func(key, value string, more ...string) error {
		values, err := s.Repo.Values(ctx, key)
		if err != nil || slices.Contains(values, value) {
			return err
		}
		command := slices.Concat([]string{"config", "--local"}, more, []string{key, value})
		if s.Dry {
			s.Report.Say("would run git %s", gitops.Escape(strings.Join(command, " ")))
			return nil
		}
		return s.Repo.Change(ctx, gitops.Call{Args: command})
	}
	for _, key := range p.settings {
		var more []string
		if key[0] == session.ExcludeKey {
			more = []string{"--add"}
		}
		if err := set(key[0], key[1], more...); err != nil {
			return err
		}
	}
	if p.notes {
		return set(displayRefKey, promote.NotesRef, "--add")
	}
	return nil
}

// hintAtNext says what to type now.
func hintAtNext(ctx context.Context, s *session.Session, files []string) error {
	if _, err := os.Lstat(filepath.Join(s.Repo.Top, environment.DotenvName)); err == nil {
		tracked, err := s.Repo.Tracks(ctx, environment.DotenvName)
		if err != nil {
			return err
		}
		ignored, err := s.Repo.Ignored(ctx, []string{environment.DotenvName})
		if err != nil {
			return err
		}
		if !tracked && !ignored[environment.DotenvName] {
			s.Report.Hint("echo " + environment.DotenvName + " >>.gitignore")
		}
	}
	if len(files) == 0 {
		s.Report.Say("there was nothing to write")
	} else if !s.Dry {
		s.Report.Hint("git add " + strings.Join(files, " ") + " && git commit -m 'Describe the environment'")
	}
	s.Report.Hint("git airlock start -- AGENT")
	return nil
}
