package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/agents"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/manual"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/network"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/pushcheck"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
	"github.com/git-airlock/git-airlock/prison/recipe"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/evidence"
	"github.com/git-airlock/git-airlock/promote/policy"
	"github.com/git-airlock/git-airlock/promote/record/store"
	"github.com/git-airlock/git-airlock/promote/undo"
	"github.com/git-airlock/git-airlock/words"
)

// known computes completions from the repository. It changes nothing, and ignores everything that it cannot read.
type known struct {
	ctx     context.Context
	session func() *session.Session // opens the repository here; nil if there is none that git may read
}

func newKnown(ctx context.Context) *known {
	return &known{ctx, sync.OnceValue(func() *session.Session {
		return session.Peek(ctx, session.Options{Report: ui.Reporter{To: io.Discard}, Now: ui.Now})
	})}
}

// record returns the record of the airlock here, or nil if there is none.
func (k *known) record() *airlock.Record {
	s := k.session()
	if s == nil {
		return nil
	}
	r, err := s.Store.Here()
	if err != nil {
		return nil
	}
	return r
}

// withEngine calls a function with the engine of the airlock here. Without an airlock it does nothing.
func (k *known) withEngine(use func(*promote.Engine)) {
	r := k.record()
	if r == nil || r.Phase != airlock.Running && r.Phase != airlock.Stopped {
		return
	}
	engine := k.session().Engine(*r)
	defer engine.Close()
	use(engine)
}

// rules returns the rules whose findings --accept can accept. Those that hold a commit come first, with the held paths.
func (k *known) rules() (all []manual.Candidate) {
	seen := map[string]bool{}
	add := func(text, about string) {
		// An escaped path cannot be typed in this form.
		if !seen[text] && gitops.Text(text).Plain() {
			all = append(all, manual.Candidate{Text: text, About: about})
		}
		seen[text] = true
	}
	k.withEngine(func(engine *promote.Engine) {
		findings, _ := engine.Findings(k.ctx)
		for _, v := range findings.Held {
			for _, f := range v.Findings {
				if f.Action != policy.Hold {
					continue
				}
				add(f.Rule, f.Detail)
				for _, p := range f.Paths {
					add(f.Rule+":"+p, f.Detail)
				}
			}
		}
	})
	for _, d := range policy.Rules() {
		if d.Key != "" {
			add(d.ID, d.Doc)
		}
	}
	return all
}

// candidatesShown bounds the number of offered commits and refs.
const candidatesShown = 100

// pending returns the pending commits, newest first.
func (k *known) pending() (all []manual.Candidate) {
	k.withEngine(func(engine *promote.Engine) {
		commits, _ := engine.Repo.Summaries(k.ctx, candidatesShown, engine.Record.Ref("promoted")+".."+engine.Record.Ref("pending"))
		all = summaries(commits)
	})
	return all
}

// reviewable returns the pending commits, and with airlock.review=push the landed ones that may not be pushed yet, newest first.
func (k *known) reviewable() []manual.Candidate {
	all := k.pending()
	s := k.session()
	if s == nil {
		return all
	}
	made, _ := pushcheck.Made(k.ctx, s)
	for _, c := range slices.Backward(made) {
		if !c.Passes() && len(all) < candidatesShown {
			all = append(all, manual.Candidate{Text: fmt.Sprintf("%.12s", c.ID), About: c.Subject.String()})
		}
	}
	return all
}

// operations returns the landings that undo can take back, newest first.
func (k *known) operations() (all []manual.Candidate) {
	k.withEngine(func(engine *promote.Engine) {
		chain, err := undo.List(k.ctx, engine)
		if err != nil {
			return
		}
		done, _ := chain.Landings()
		for _, o := range slices.Backward(done[max(0, len(done)-candidatesShown):]) {
			all = append(all, manual.Candidate{Text: strconv.Itoa(o.Number), About: o.Title()})
		}
	})
	return all
}

// inner returns the inner branches that do not land by themselves.
func (k *known) inner() (all []manual.Candidate) {
	k.withEngine(func(engine *promote.Engine) {
		state, _ := engine.State(k.ctx)
		for _, w := range state.OtherRefs {
			if w.Name != "" && gitops.Text(w.Name).Plain() {
				all = append(all, manual.Candidate{Text: strings.TrimPrefix(w.Name, "refs/heads/"), About: words.Count(w.Commits, "commit")})
			}
		}
	})
	return all
}

// refs returns the repository's refs below a prefix.
func (k *known) refs(below string) []manual.Candidate {
	s := k.session()
	if s == nil {
		return nil
	}
	refs, _ := s.Repo.RefNames(k.ctx, candidatesShown, below)
	return summaries(refs)
}

// remotes returns the remotes of this repository.
func (k *known) remotes() []manual.Candidate {
	s := k.session()
	if s == nil {
		return nil
	}
	names, _ := s.Repo.Output(k.ctx, "remote")
	return plain(strings.Fields(names))
}

// variables returns the names in the user's environment and .env file.
func (k *known) variables() (all []manual.Candidate) {
	if s := k.session(); s != nil {
		own, _ := environment.Dotenv(s.Repo.Top)
		for _, name := range slices.Sorted(maps.Keys(own)) {
			all = append(all, manual.Candidate{Text: name, About: "from " + environment.DotenvName})
		}
	}
	for _, name := range hostenv.Names() {
		all = append(all, manual.Candidate{Text: name})
	}
	return all
}

// enginePatience bounds the time that a completion waits for a container engine.
const enginePatience = time.Second

// images returns the images of the container engine, if it answers.
func (k *known) images() []manual.Candidate { return k.ofEngine(prisons.Containers().ImageNames) }

// runtimes returns the runtimes of the container engine, if it answers.
func (k *known) runtimes() []manual.Candidate { return k.ofEngine(prisons.Containers().Runtimes) }

func (k *known) ofEngine(ask func(context.Context) ([]string, error)) []manual.Candidate {
	ctx, cancel := context.WithTimeout(k.ctx, enginePatience)
	defer cancel()
	names, _ := ask(ctx)
	return plain(names[:min(len(names), candidatesShown)])
}

// plain returns the names that can be typed.
func plain(names []string) (all []manual.Candidate) {
	for _, name := range names {
		if gitops.Text(name).Plain() {
			all = append(all, manual.Candidate{Text: name})
		}
	}
	return all
}

func summaries(of []gitops.Summary) (all []manual.Candidate) {
	for _, s := range of {
		all = append(all, manual.Candidate{Text: s.Name, About: s.Subject})
	}
	return all
}

// values returns the candidates that completion can offer here.
func (k *known) values() manual.Offered {
	branches := func() []manual.Candidate { return k.refs("refs/heads") }
	return manual.Offered{
		Values: map[string]func() []manual.Candidate{
			"RULE[:PATH]": k.rules, "REV": k.reviewable, "[OP]": k.operations, "COMMIT": k.pending, "REF": k.inner,
			"AGENT": k.agents, "NAME[=VERSION]": k.packages, "NAME": k.credentials, "NAME[=VALUE]": k.variables, "name": k.variables, "image": k.images, "runtime": k.runtimes,
			"language": func() []manual.Candidate {
				return append(plain(recipe.KnownLanguages()), manual.Candidate{Text: "none", About: "no language"})
			},
			"rule": k.networkRules, "RULE": k.networkRules, "HOST[:PORT]": k.refusedHosts, "N": k.checkpoints, "M": k.checkpoints,
			"RUN": k.runs, "[RUN]": k.runs, "REVISION": branches, "BRANCH": branches, "REMOTE": k.remotes,
			"LIST":  func() []manual.Candidate { return plain(evidence.Requirements()) },
			"level": func() []manual.Candidate { return plain([]string{"info", "notice", "warning", "error"}) },
			"log": func() []manual.Candidate {
				return append(k.refs("refs/airlock"), manual.Candidate{Text: "--ops", About: "list landings and undos"},
					manual.Candidate{Text: "--egress", About: "show what the prison reached"}, manual.Candidate{Text: "--help"})
			},
		},
		Managers: recipe.Managers,
	}
}

// agents returns the agents that start and run know by name.
func (k *known) agents() (all []manual.Candidate) {
	profiles := agents.Known()
	if s := k.session(); s != nil {
		if settings, err := s.Repo.Settings(k.ctx); err == nil {
			if own, err := agents.WithOwn(profiles, settings); err == nil {
				profiles = own
			}
		}
	}
	for _, p := range profiles {
		about := "on this machine"
		if _, missing := agents.Find(p, ui.Variable("PATH")); missing != nil {
			about = "for images that have it"
		}
		all = append(all, manual.Candidate{Text: p.Name, About: about})
	}
	return all
}

// packages returns the agents that a recipe can have.
func (k *known) packages() []manual.Candidate {
	return slices.DeleteFunc(k.agents(), func(c manual.Candidate) bool { return recipe.AgentPackage(c.Text) == "" })
}

// credentials returns the credentials of the airlock here, or those of the settings.
func (k *known) credentials() (all []manual.Candidate) {
	if s := k.session(); s != nil {
		rules, _ := s.RulesHere(k.ctx)
		for _, c := range rules.Credentials {
			all = append(all, manual.Candidate{Text: c.Name, About: "for " + network.HostsOf(c)})
		}
	}
	return all
}

// runs returns the names of the records in this repository.
func (k *known) runs() (all []manual.Candidate) {
	s := k.session()
	if s == nil {
		return nil
	}
	records, _ := store.List(k.ctx, s.Repo)
	for _, e := range records {
		all = append(all, manual.Candidate{Text: e.Name(), About: e.Manifest.Command(60)})
	}
	if len(all) > 0 {
		all = append(all, manual.Candidate{Text: "last", About: "the newest run"})
	}
	return all
}

// lockPatience bounds the time that a completion waits for another command.
const lockPatience = 200 * time.Millisecond

// checkpoints returns the numbers of the checkpoints of the airlock here.
func (k *known) checkpoints() (all []manual.Candidate) {
	r := k.record()
	if r == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(k.ctx, lockPatience)
	defer cancel()
	kept, _, _ := cmdline.Checkpoints(k.session(), *r).List(ctx)
	for _, c := range kept {
		all = append(all, manual.Candidate{Text: strconv.Itoa(c.Number), About: gitops.Text(c.Message).String()})
	}
	return all
}

// refusedHosts returns the hosts that the network of the airlock here refused last.
func (k *known) refusedHosts() (all []manual.Candidate) {
	r := k.record()
	if r == nil {
		return nil
	}
	for _, host := range cmdline.RefusedHosts(k.session().RecentRefusals(*r, true)) {
		for _, rule := range host.Rules {
			if gitops.Text(rule).Plain() && !strings.Contains(rule, " ") {
				all = append(all, manual.Candidate{Text: rule, About: "refused: " + host.Reason})
			}
		}
	}
	return all
}

// networkRules returns rules that would allow what was refused last, and the sets.
func (k *known) networkRules() []manual.Candidate {
	all := k.refusedHosts()
	for _, set := range network.Sets() {
		if !slices.ContainsFunc(all, func(c manual.Candidate) bool { return c.Text == set }) {
			all = append(all, manual.Candidate{Text: set, About: "a set of hosts"})
		}
	}
	return all
}

// completionCommand prints a shell's completion script, which calls completeCommand.
func completionCommand() *cli.Command {
	return &cli.Command{
		Name: "completion", Usage: "print the completion for a shell",
		UsageText: "git airlock completion bash|zsh|fish",
		Hidden:    true,
		Action: func(c *cli.Context) error {
			script, ok := manual.CompletionScript(c.Args().First())
			if !ok {
				return ui.Usagef("completion: which shell? git airlock completion bash|zsh|fish")
			}
			_, err := c.App.Writer.Write(script)
			return err
		},
	}
}

// completeCommand prints the completions of the last word after "git airlock": one a line, with a tab and a description. A line
// that begins with a colon asks the shell to complete files, folders, programs or arguments of git log. The command changes
// nothing and prints no errors.
func completeCommand() *cli.Command {
	return &cli.Command{
		Name: "complete", Usage: "offer completions of the last word",
		UsageText: "git airlock complete -- WORD...",
		Hidden:    true,
		Action: func(c *cli.Context) error {
			if inside := cmdline.Inside(c); len(inside) > 0 {
				manual.Complete(c.App.Writer, cmdline.ProgramPage(c.App), newKnown(c.Context).values(), inside)
			}
			return nil
		},
	}
}
