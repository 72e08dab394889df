package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/agents"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/credential/secret"
	"github.com/git-airlock/git-airlock/prison/recipe"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// runStartup runs what the setup of a running prison still lacks, see [environment.Builder.Complete].
func (s *Session) runStartup(ctx context.Context, r airlock.Record, setup environment.Setup, started bool) error {
	record, err := s.Store.Startup(r.ID)
	if err != nil || s.Dry || len(setup.Prestart)+len(setup.Startup) == 0 && record == "" {
		return err
	}
	unlock, err := s.Store.LockFile(ctx, r.ID, "startup.lock")
	if err != nil {
		return err
	}
	defer unlock()
	box, err := s.Prisons().Attach(ctx, r)
	if err != nil {
		return err
	}
	defer box.Close()
	if record, err = s.Store.Startup(r.ID); err != nil { // another start may have changed it before the lock
		return err
	}
	keep := func(record string) error { return s.Store.SetStartup(r.ID, record) }
	return s.Environment().Complete(ctx, box, setup, started, record, keep)
}

// launch runs the agent's command detached. started reports whether this start has started the prison, or would in a dry run.
func (s *Session) launch(ctx context.Context, r airlock.Record, q Request, started bool) error {
	if !q.launchesSome() {
		return nil
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if !started { // nothing runs in a prison that was just started
		running, err := s.Prisons().Launched(ctx, r)
		if err != nil {
			return err
		}
		if running != nil && !running.Exited {
			words := make([]string, len(running.Argv))
			for i, word := range running.Argv {
				words[i] = gitops.Pasteable(word)
			}
			return &environment.Refusal{Text: fmt.Sprintf("the prison is already running %s", strings.Join(words, " ")), Next: []string{"git airlock status", "git airlock stop"}}
		}
	}
	if s.Dry {
		s.Report.Say("would launch %s", q.launches())
		return nil
	}
	box, err := s.Prisons().Attach(ctx, r)
	if err != nil {
		return err
	}
	defer box.Close()
	p := prison.Process{Argv: q.Command}
	if q.Agent != nil {
		if p, err = s.Summon(ctx, r, box, *q.Agent); err != nil {
			return err
		}
	}
	p.Terminal = s.Terminal
	failed := func(err error) error { return err }
	if s.Recorder != nil {
		if failed, err = s.Recorder.Launching(ctx, r, p.Argv, q.Agent); err != nil {
			return err
		}
	}
	if err := box.Launch(ctx, p); err != nil {
		return failed(q.Agent.Advise(err))
	}
	s.Report.Say("launched %s", q.launches())
	return nil
}

// Agent is an agent that a command asks for by its name.
type Agent struct {
	agents.Profile
	Found   agents.Found
	Missing error    // why this machine's program cannot be used; nil if it can
	Words   []string // the arguments of the user
	Asks    bool     // there is a task; without one, the agent shows its interface
	Task    string
}

// Advise adds to an error how the agent's program gets into an image, if the error says that it is not there.
func (a *Agent) Advise(err error) error {
	if a == nil || !errors.Is(err, prison.ErrNotFound) || recipe.AgentPackage(a.Name) == "" {
		return err
	}
	return environment.Advise(err, fmt.Sprintf("git airlock init --agent %s  # then commit %s, stop, and start", a.Name, recipe.FileName))
}

// addAgent adds what the agent of a request needs to the airlock: its program, as tools of a prison without images.
func (c *resolved) addAgent() error {
	a := c.Agent
	if a == nil {
		return nil
	}
	if !c.session.Prisons().Traits(c.airlock).Images {
		if a.Missing != nil {
			return environment.Advise(a.Missing, a.Install())
		}
		kept := c.airlock.Tools
		if len(c.Tools) > 0 {
			kept = c.Tools
		}
		c.Tools = slices.DeleteFunc(slices.Clone(kept), func(t airlock.Tool) bool { return t.Optional })
		for _, t := range a.Found.Tools {
			c.Tools = slices.DeleteFunc(c.Tools, func(o airlock.Tool) bool { return o.Name == t.Name })
			c.Tools = append(c.Tools, airlock.Tool(t))
		}
	}
	if c.Isolation.Limits.Memory < a.Memory {
		c.session.Report.Say("%s may need %d MiB of memory, and the limit is %d MiB", a.Name, a.Memory>>20, c.Isolation.Limits.Memory>>20)
	}
	return c.checkKeys()
}

// checkKeys prints a message if an agent gets no key. It refuses an agent whose login has ended and who has no other key.
func (c *resolved) checkKeys() error {
	a := c.Agent
	lacks := len(a.Keys) > 0 && !slices.ContainsFunc(a.Keys, func(key string) bool {
		return slices.ContainsFunc(c.environ(), func(v string) bool { return strings.HasPrefix(v, key+"=") && v != key+"=" }) ||
			slices.ContainsFunc(c.rules.Credentials, func(r control.Credential) bool {
				return slices.Contains(r.Variables, key) && (c.session.Dry || c.hasValue(r)) // a dry run reads no values
			})
	})
	switch {
	case lacks && c.ended != nil:
		return &environment.Refusal{Text: c.ended.Error(), Next: []string{a.Program + "  # on this machine: it renews the login. Then type the command again",
			fmt.Sprintf("export %s=KEY  # or this, and then the command again", a.Keys[0])}}
	case c.ended != nil:
		c.session.Report.Say("%s", c.ended)
	}
	if !lacks {
		return nil
	}
	c.session.Report.Say("%s gets no key: it takes one from %s", a.Name, strings.Join(a.Keys, ", "))
	c.session.Report.Hint(c.withKey())
	return nil
}

// withKey returns the command that gives the agent a key. If this start launches the agent without one, it must be stopped before: an
// airlock runs one launched command at a time.
func (c *resolved) withKey() string {
	a := c.Agent
	outside := c.Isolation.Network == prison.NetworkAllowlist.String()
	switch launches := !a.Asks && !c.session.Dry; {
	case outside && launches:
		return fmt.Sprintf("export %s=KEY && git airlock stop  # and type the command again: the key stays outside", a.Keys[0])
	case outside:
		return fmt.Sprintf("export %s=KEY  # and type the command again: the key stays outside", a.Keys[0])
	case launches:
		return fmt.Sprintf("git airlock stop && git airlock start %s --env %s  # the agent can read it", a.Name, a.Keys[0])
	case a.Asks:
		return fmt.Sprintf("git airlock run %s --env %s -p TASK  # the agent can read it", a.Name, a.Keys[0])
	}
	return fmt.Sprintf("git airlock start %s --env %s  # the agent can read it", a.Name, a.Keys[0])
}

// hasValue reports whether the value of a credential was read.
func (c *resolved) hasValue(r control.Credential) bool {
	return slices.ContainsFunc(c.keys, func(k secret.Secret) bool { return k.Name == r.Name })
}

// Summon makes a running prison ready for an agent, and returns the agent's process: it writes the files of its home that are
// missing. A prison without the agent's program is an [environment.Refusal].
func (s *Session) Summon(ctx context.Context, r airlock.Record, box prison.Prison, a Agent) (prison.Process, error) {
	images := s.Prisons().Traits(r).Images
	if err := s.startedWithout(r, &a, nil); err != nil {
		return prison.Process{}, err
	}
	if a.Missing != nil && !images {
		return prison.Process{}, environment.Advise(a.Missing, a.Install())
	}
	if err := agents.Seed(ctx, box, a.Profile); err != nil {
		return prison.Process{}, err
	}
	argv := a.Found.In(a.Profile, images)
	if a.Asks {
		argv = append(argv, a.AskFor(a.Task, a.Words...)...)
	} else {
		argv = slices.Concat(argv, a.Interactive, a.Words)
	}
	return prison.Process{Argv: argv, Env: a.Found.Env(a.Profile, func(t prison.Tool) bool { return slices.Contains(r.Tools, airlock.Tool(t)) })}, nil
}

// startedWithout returns the refusal if the running prison lacks an agent's program, and nil otherwise or without an agent. typed are the
// options that the prison needs a new start for, too.
func (s *Session) startedWithout(r airlock.Record, a *Agent, typed []string) error {
	if a == nil || s.Prisons().Traits(r).Images || !slices.ContainsFunc(a.Found.Tools, func(t prison.Tool) bool {
		return !t.Optional && !slices.Contains(r.Tools, airlock.Tool(t))
	}) {
		return nil
	}
	next := "git airlock stop && " + strings.Join(append([]string{"git airlock start", a.Name}, typed...), " ")
	if a.Asks { // run starts a stopped airlock
		next = "git airlock stop  # and type the command again"
	}
	return &environment.Refusal{Text: fmt.Sprintf("the prison of %s was started without %s", r.ID, a.Name), Next: []string{next}}
}

func (q Request) launchesSome() bool { return len(q.Command) > 0 || q.Agent != nil && !q.Agent.Asks }

// launches returns the words of a message for what a request launches.
func (q Request) launches() gitops.Text {
	if q.Agent != nil {
		return gitops.Text(q.Agent.Name)
	}
	return gitops.Text(fmt.Sprintf("%q", q.Command))
}
