package prepare

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/agents"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/inbound"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/request"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/ignore"
	"github.com/git-airlock/git-airlock/prison/recipe"
	"github.com/git-airlock/git-airlock/promote"
)

func initCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "init", Usage: "write a recipe for the agent's environment, and your settings",
		UsageText: "git airlock init [--yes] [options]",
		Description: "Reads the files of the repository and asks questions if there is a terminal. Then it writes the recipe\n" +
			recipe.FileName + ", the names of the passed variables into " + exampleName + ", and settings into .git/config. It\n" +
			"adds to existing files and never changes what they contain. Each question has an option that answers it. You do not need\n" +
			"init before \"start\".",
		Flags: initFlags(),
		Action: cmdline.InRepository(func(c *cli.Context, s *session.Session) error {
			p, err := planInit(c, s)
			if err != nil {
				return err
			}
			if !c.Bool("yes") && !s.Dry && s.Report.CanAsk() {
				if err := (wizard{s, c.App.ErrWriter, c, bufio.NewReader(os.Stdin)}).ask(&p); err != nil {
					return err
				}
			}
			return initialize(c.Context, s, p)
		}),
	}, cmdline.Takes{})
}

// initSettings lists the options of init that become settings.
var initSettings = []string{"backend", "image", "network", "memory", "cpus", "pids"}

func initFlags() []cli.Flag {
	flags := []cli.Flag{
		&cli.BoolFlag{Name: "yes", Usage: "ask no questions; use the answers found in the repository's files"},
		&cli.StringSliceFlag{Name: "language", Usage: "a language as `NAME[=VERSION][,manager=NAME]`, instead of those found in the repository; \"none\" for no language"},
		&cli.StringSliceFlag{Name: "agent", Usage: "a coding agent for the image, as `NAME[=VERSION]`; without VERSION that of this machine"},
		&cli.StringSliceFlag{Name: "package", Usage: "Debian `package` to install"},
		&cli.StringFlag{Name: "base", Usage: "container `image` to build the environment on"},
		&cli.StringSliceFlag{Name: "startup", Usage: "`command` to run at the first start"},
		&cli.StringSliceFlag{Name: "pass", Usage: "`name` of a variable in your environment to pass to the agent; start asks for your consent"},
		&cli.StringSliceFlag{Name: "set", Usage: "variable to set, as `NAME=VALUE`; committed, so not for secrets"},
		&cli.StringSliceFlag{Name: "exclude", Usage: "leave files that match the `pattern` out of snapshots"},
		&cli.BoolFlag{Name: "show-notes", Usage: "let git log show the notes on the origin of landed commits"},
	}
	for _, f := range request.Flags() {
		if slices.Contains(initSettings, f.Names()[0]) {
			flags = append(flags, f)
		}
	}
	return flags
}

// initPlan has the recipe and the settings that init writes.
type initPlan struct {
	recipe   recipe.Recipe // what init adds
	had      []byte        // the existing recipe, nil for none
	have     recipe.Recipe // the existing recipe, parsed
	settings [][2]string
	notes    bool
}

// planInit makes a plan from the options, and from the files of the repository for options that are not set.
func planInit(c *cli.Context, s *session.Session) (p initPlan, err error) {
	if _, err := request.Of(c, s, nil, nil); err != nil { // checks that the settings are valid
		return p, err
	}
	for _, name := range initSettings {
		if c.IsSet(name) {
			p.settings = append(p.settings, [2]string{"airlock." + name, c.String(name)})
		}
	}
	if _, wrong, ok := ignore.ParseAll(c.StringSlice("exclude")); !ok {
		return p, ui.Usagef("--exclude: %q is not a pattern as in gitignore(5)", wrong)
	}
	for _, pattern := range c.StringSlice("exclude") {
		p.settings = append(p.settings, [2]string{inbound.ExcludeKey, pattern})
	}
	p.notes = c.Bool("show-notes")
	if p.had, err = s.Environment().ReadOwn(recipe.FileName); err != nil {
		return p, err
	}
	if p.had != nil {
		if p.have, err = recipe.Parse(p.had); err != nil {
			return p, err
		}
	}
	if p.recipe.Languages, err = languagesFor(s, c.StringSlice("language"), p.have); err != nil {
		return p, err
	}
	if p.recipe.Agents, err = agentsFor(c.StringSlice("agent")); err != nil {
		return p, ui.Usagef("--agent: %s", err)
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

// addNode adds Node to the plan if an agent of the written recipe needs a newer one than that recipe provides, and reports whether it did. It changes
// no version that the plan or the existing recipe names, but prints what to change.
func (p *initPlan) addNode(s *session.Session, written recipe.Recipe) bool {
	if !written.LacksNode() {
		return false
	}
	name, major := written.LeastNode()
	isNode := func(l recipe.Language) bool { return l.Name == "node" }
	at := slices.IndexFunc(p.recipe.Languages, isNode)
	if slices.ContainsFunc(p.have.Languages, isNode) || at >= 0 && p.recipe.Languages[at].Version != recipe.System {
		s.Report.Say("%s needs Node %d or later: set version = \"%s\" in [languages.node] of %s", name, major, recipe.SufficientNode, recipe.FileName)
		return false
	}
	s.Report.Say("%s needs Node %d or later, so the recipe gets Node %s; use --language node=VERSION for another one", name, major, recipe.SufficientNode)
	if at < 0 {
		at, p.recipe.Languages = len(p.recipe.Languages), append(p.recipe.Languages, recipe.Language{Name: "node"})
	}
	p.recipe.Languages[at].Version = recipe.SufficientNode
	return true
}

// checkRecipe returns an error if a recipe could not be read back.
func checkRecipe(r recipe.Recipe) error {
	_, err := recipe.Parse(recipe.Marshal(r))
	if wrong, ok := errors.AsType[recipe.Errors](err); ok && len(wrong) > 0 {
		return ui.Usagef("%s", wrong[0].Message)
	}
	return err
}

// languagesFor parses the given languages. Without any, it detects the languages in the repository's files, except those that the
// recipe has already.
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
			s.Report.Say("%s needs %s, but names no version; use --language %s=VERSION", gitops.Text(f.File), f.Name, f.Name)
		default:
			s.Report.Say("found %s %s (%s)", f.Name, f.Version, gitops.Text(f.File))
			all = append(all, f.Language)
		}
	}
	return all, nil
}

// agentsFor returns the given agents. An agent without a version gets the version of this machine.
func agentsFor(asked []string) (all []recipe.Agent, err error) {
	for _, text := range asked {
		name, version, _ := strings.Cut(text, "=")
		if recipe.AgentPackage(name) == "" {
			return nil, fmt.Errorf("a recipe cannot have %s, but only %s", gitops.Text(name), strings.Join(recipe.Agents(), ", "))
		}
		if version == "" {
			version = installed(name)
		}
		if version == "" {
			return nil, fmt.Errorf("%s is not here as an npm package: add its version, as %s=1.2.3", gitops.Text(name), gitops.Text(name))
		}
		all = append(all, recipe.Agent{Name: name, Version: version})
	}
	return all, nil
}

// installed returns the version of an agent's npm package on this machine. It is empty if there is none.
func installed(name string) string {
	p, err := agents.Named(agents.Known(), name)
	if err != nil {
		return ""
	}
	f, _ := agents.Find(p, ui.Variable("PATH"))
	return f.Version
}

// found returns the names of the known agents whose programs this machine has.
func found() (names []string) {
	for _, p := range agents.Known() {
		if _, err := agents.Find(p, ui.Variable("PATH")); err == nil {
			names = append(names, p.Name)
		}
	}
	return names
}

// initialize writes the files and settings of a plan.
func initialize(ctx context.Context, s *session.Session, p initPlan) error {
	content, full, kept, err := p.written()
	if err == nil && p.addNode(s, full) {
		content, full, kept, err = p.written()
	}
	if err != nil {
		return err
	}
	written, err := addTo(s, recipe.FileName, p.had, content)
	if err != nil {
		return err
	}
	for _, table := range kept {
		s.Report.Say("%s: [%s] is not changed; it differs from the options", recipe.FileName, table)
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
	return hintAtNext(ctx, s, append(written, example...), full.Agents)
}

// written returns the recipe with the additions of the plan, as text and parsed, and the tables that it leaves unchanged although the plan differs.
func (p initPlan) written() (content []byte, full recipe.Recipe, kept []string, err error) {
	if content = recipe.Marshal(p.recipe); p.had != nil {
		if content, kept, err = recipe.Merge(p.had, p.recipe); err != nil {
			return nil, full, nil, &environment.Refusal{Text: err.Error() + "; add it by hand"}
		}
	}
	full, err = recipe.Parse(content)
	return content, full, kept, err
}

// addTo appends to a file and prints the new lines. content begins with had, the previous content. It returns the name if there are new
// lines.
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
	if !s.Dry {
		if err := writeOwn(filepath.Join(s.Repo.Top, name), had, content); err != nil {
			return nil, err
		}
	}
	s.Report.Say("%s %s", word, name)
	for line := range bytes.Lines(bytes.Trim(added, "\n")) {
		s.Report.Quote("+ " + string(bytes.TrimRight(line, "\r\n")))
	}
	return []string{name}, nil
}

// writeOwn writes a file of the work tree. had is its previous content, or nil if the file must be new.
func writeOwn(path string, had, content []byte) error {
	if had != nil {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		return cmdline.ReplaceFile(path, content, info.Mode().Perm())
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Close())
}

// exampleName is a file that lists for other users the variables to set in their .env.
const exampleName = ".env.example"

// withNames adds missing variables to the example file, without values.
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

// configure writes the settings that have another value.
func configure(ctx context.Context, s *session.Session, p initPlan) error {
	set := func(key, value string, more ...string) error {
		values, err := s.Repo.Values(ctx, key)
		if err != nil || slices.Contains(values, value) {
			return err
		}
		command := slices.Concat([]string{"config", "--local"}, more, []string{key, value})
		if s.Dry {
			s.Report.Say("would run git %s", gitops.Text(strings.Join(command, " ")))
			return nil
		}
		return s.Repo.Change(ctx, gitops.Call{Args: command})
	}
	for _, key := range p.settings {
		var more []string
		if key[0] == inbound.ExcludeKey {
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

// hintAtNext prints the next commands. agents are those of the recipe.
func hintAtNext(ctx context.Context, s *session.Session, files []string, agents []recipe.Agent) error {
	if _, err := os.Lstat(filepath.Join(s.Repo.Top, environment.DotenvName)); err == nil {
		tracked, err := s.Repo.Tracks(ctx, environment.DotenvName)
		if err != nil {
			return err
		}
		ignored, err := ignore.Named(ctx, s.Repo, []string{environment.DotenvName})
		if err != nil {
			return err
		}
		if !tracked && !ignored[environment.DotenvName] {
			s.Report.Hint("echo " + environment.DotenvName + " >>" + s.Environment().FromHere(".gitignore"))
		}
	}
	if len(files) == 0 {
		s.Report.Say("nothing to write")
	} else if !s.Dry {
		for i, file := range files {
			files[i] = s.Environment().FromHere(file)
		}
		s.Report.Hint("git add " + strings.Join(files, " ") + " && git commit -m 'Describe the environment'")
	}
	names := found()
	if len(agents) > 0 { // an image has no others
		names = nil
	}
	for _, a := range agents {
		names = append(names, a.Name)
	}
	for _, name := range names {
		s.Report.Hint("git airlock start " + name)
	}
	s.Report.Hint("git airlock start AGENT")
	return nil
}
