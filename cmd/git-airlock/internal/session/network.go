package session

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/network"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/credential/secret"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// withNetwork writes the network's rules for a prison that is about to start, and adds to its spec the variables that its programs
// need to use the network.
func (c resolved) withNetwork(spec prison.Spec) (prison.Spec, error) {
	if spec.Network == prison.NetworkNone {
		return spec, nil
	}
	c.rules.Added = prisons.Authorities(c.session.Now())
	rules, err := network.Begin(spec.Dir, c.rules, c.keys, c.session.Now())
	if rules.Lockdown {
		c.session.Report.Say("the network is locked down: nothing is reached")
		c.session.Report.Hint("git airlock net unlock")
	}
	if err != nil {
		return spec, err
	}
	spec.Secrets, spec.Env = c.keys, append(network.Placeholders(rules.Credentials), spec.Env...)
	spec, warning, err := network.WithTrust(spec, c.session.Now())
	if warning != "" {
		c.session.Report.Say("%s", warning)
	}
	return spec, err
}

// readRules reads the rules of the network for a prison that is about to start, and the values of its credentials.
func (c *resolved) readRules(ctx context.Context) (err error) {
	s := c.session
	if c.Isolation.Network == prison.NetworkNone.String() { // a wrong setting is refused all the same
		_, err := network.Compile(ctx, s.Repo, s.Config, c.kept(), airlock.Rules{})
		return err
	}
	if c.rules, err = network.Compile(ctx, s.Repo, s.Config, c.kept(), c.Rules); err != nil {
		return err
	}
	for _, warning := range append(network.Warnings(c.rules.Allow), network.Rules{Rules: c.rules, Open: c.Isolation.Network == prison.NetworkOpen.String()}.DeniedByName(s.Now())...) {
		s.Report.Say("%s", gitops.Text(warning))
	}
	if c.Isolation.Network == prison.NetworkOpen.String() && len(c.rules.Credentials) > 0 {
		s.Report.Say("credentials are not used: they need --network allowlist")
		c.rules.Credentials = nil
	}
	if s.Dry {
		return nil
	}
	password, err := network.ProxyPassword(ctx, s.Repo, s.Config, c.kept())
	if lost, ok := errors.AsType[*network.LostPassword](err); ok {
		return &environment.Refusal{Text: lost.Error(), Next: lost.Next()}
	}
	if err != nil {
		return err
	}
	keys, problems := network.Values(ctx, c.rules.Credentials)
	s.knowsValues = s.knowsValues || slices.ContainsFunc(keys, func(k secret.Secret) bool { return !k.Source.Fixed() })
	c.keys = append(keys, password...)
	for _, p := range problems {
		if ended := new(secret.Ended); c.Agent != nil && errors.As(p, &ended) && ended.Program == c.Agent.Program {
			c.ended = p // checkKeys refuses the start unless the agent has another key
			continue
		}
		s.Report.Say("%s", p)
		s.Report.Hint(Next(p)...)
	}
	for _, cred := range c.rules.Credentials {
		if c.hasValue(cred) {
			s.Report.Say("%s has a placeholder inside; the key stays outside, for %s (credential %s)", strings.Join(cred.Variables, ", "), network.HostsOf(cred), cred.Name)
		}
	}
	return nil
}

// supplyKeys gives the network of a running prison the values of credentials that it has lost.
func (s *Session) supplyKeys(ctx context.Context, r airlock.Record) {
	spec := s.Prisons().Spec(r)
	if spec.Network != prison.NetworkAllowlist {
		return
	}
	for _, c := range network.Lost(spec.Dir) {
		keys, problems := network.Values(ctx, []control.Credential{c})
		if err := errors.Join(problems...); err != nil {
			s.Report.Say("%s", err)
			s.Report.Hint(network.Renewal(c))
		} else if err := s.Prisons().Supply(ctx, r, keys); err != nil {
			s.Report.Say("the network does not get the value of the credential %s: %s", c.Name, err)
		} else {
			s.Report.Say("the network has the value of the credential %s again", c.Name)
		}
	}
}

// Network is the network of an airlock at one moment.
type Network struct {
	Dir   string // has the files of package control
	Rules control.Rules
	State control.State // zero if the network has not run
	Runs  bool          // the prison is running
	Open  bool          // it reaches every public host that no rule denies
}

// Network reads the network of an airlock. It refuses for an airlock without a network.
func (s *Session) Network(ctx context.Context, r airlock.Record) (n Network, err error) {
	if _, err := prison.ParseNetwork(r.Isolation.Network); err != nil { // of a newer program
		return n, err
	}
	spec := s.Prisons().Spec(r)
	if spec.Network == prison.NetworkNone {
		return n, &environment.Refusal{Text: "the network of this airlock is none: it reaches nothing",
			Next: []string{"git airlock stop && git airlock start --network allowlist --allow HOST"}}
	}
	n.Dir, n.Open = spec.Dir, spec.Network == prison.NetworkOpen
	if n.Rules, err = control.ReadRules(n.Dir); err != nil {
		return n, err
	}
	if n.State, err = control.ReadState(n.Dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return n, err
	}
	n.Runs, err = s.Prisons().Runs(ctx, r)
	if errors.Is(err, prison.ErrFrozen) {
		return n, nil
	}
	if err == nil && !n.Runs { // a holder that was killed leaves the state of a running network
		n.State.Credentials = control.LastUses(n.Dir)
	}
	return n, err
}

// networkNotes returns the notes about the network of an airlock. ok is false for an airlock without a network.
func (s *Session) networkNotes(r airlock.Record) (notes network.Notes, ok bool) {
	spec := s.Prisons().Spec(r)
	return network.Notes{Airlock: r.ID, Session: r.Session, Dir: spec.Dir}, spec.Network != prison.NetworkNone
}

// ChangeNetwork changes the rules of an airlock's network, and waits until they are in force if its prison is running. change gets
// the present rules, and may refuse. It returns the network with the new rules, and with its state after them.
func (s *Session) ChangeNetwork(ctx context.Context, r airlock.Record, change func(control.Rules) (control.Rules, error)) (Network, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return Network{}, err
	}
	n, err := s.Network(ctx, r)
	if err == nil {
		n.Rules, err = change(n.Rules)
	}
	if err == nil && !s.Dry {
		n.Rules, err = network.Write(n.Dir, n.Rules)
	}
	unlock()
	if err != nil || s.Dry || !n.Runs {
		return n, err
	}
	before := n.State
	if n.State, err = network.Await(ctx, n.Dir, n.Rules.Generation); err == nil && n.State.Authorities != before.Authorities && n.State.Authorities != "" {
		s.trustAgain(ctx, r, n.Rules.Added+before.Authorities, n.Rules.Added+n.State.Authorities)
	}
	return n, err
}

// networkHere returns the network of the airlock here, or the one that the settings describe if there is no airlock.
func (s *Session) networkHere(ctx context.Context) (n Network, err error) {
	r, err := s.Here(ctx)
	if errors.Is(err, ErrNoAirlock) {
		n.Open = s.Config.String("airlock.network", "") == prison.NetworkOpen.String()
		n.Rules, err = network.Compile(ctx, s.Repo, s.Config, nil, airlock.Rules{})
		return n, err
	}
	if err != nil {
		return n, err
	}
	return s.Network(ctx, r)
}

// RulesHere returns the rules of the airlock here, or those of the settings if there is no airlock.
func (s *Session) RulesHere(ctx context.Context) (network.Rules, error) {
	n, err := s.networkHere(ctx)
	return network.Rules{Rules: n.Rules, Open: n.Open}, err
}

// Credential returns the network of the airlock here, or the one that the settings describe if there is no airlock. The credential of
// that name is the only one in its rules. problem is the error of reading the credential's value.
func (s *Session) Credential(ctx context.Context, name string) (n Network, problem, err error) {
	if n, err = s.networkHere(ctx); err != nil {
		return n, nil, err
	}
	n.Rules.Credentials = slices.DeleteFunc(n.Rules.Credentials, func(c control.Credential) bool { return c.Name != name })
	if len(n.Rules.Credentials) != 1 {
		if s.Config.String("airlock.credential."+name+".source", "") != "" {
			return n, nil, &environment.Refusal{Text: "this airlock was started without the credential " + gitops.Text(name).String(), Next: []string{"git airlock stop && git airlock start"}}
		}
		return n, nil, requestErrorf("no credential is called %q; airlock.credential.<name>.source makes one, see git airlock help net", gitops.Text(name))
	}
	_, problems := network.Values(ctx, n.Rules.Credentials)
	return n, errors.Join(problems...), nil
}

// LedgerDir returns the folder of the ledger of the airlock here. The folder may not exist yet.
func (s *Session) LedgerDir(ctx context.Context) (string, error) {
	r, err := s.Here(ctx)
	if err != nil {
		return "", err
	}
	return s.Prisons().Spec(r).Dir, nil
}

// SaveRule adds a rule to the settings of the repository.
func (s *Session) SaveRule(ctx context.Context, key, text string) error {
	if s.Dry {
		return nil
	}
	return s.Repo.Change(ctx, gitops.Call{Args: []string{"config", "--local", "--add", key, text}})
}

// RecentRefusals returns what the network of an airlock has refused in the last hour. runs reports whether the prison runs. After an error
// it returns none, because an error here should not hide the rest of a status.
func (s *Session) RecentRefusals(r airlock.Record, runs bool) network.Recent {
	spec := s.Prisons().Spec(r)
	if spec.Network == prison.NetworkNone {
		return network.Recent{}
	}
	recent := network.RecentRefusals(spec.Dir, spec.Network == prison.NetworkOpen, runs, s.Now())
	recent.Agent, recent.Unneeded = r.Rules.Agent, r.Rules.Unneeded
	return recent
}

// trustAgain lets programs inside trust other certificates after a change of rules in a running prison.
func (s *Session) trustAgain(ctx context.Context, r airlock.Record, before, after string) {
	if before == "" {
		s.Report.Say("programs inside do not trust the network's certificates for such a rule before the prison is started again")
		s.Report.Hint("git airlock stop && git airlock start")
	} else {
		s.Report.Say("programs inside that are started from now on trust the network's certificates; running ones may have to be started again")
	}
	s.Prisons().WriteTrust(ctx, r, after)
}
