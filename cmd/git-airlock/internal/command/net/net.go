package net

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/network"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

func netCommand() *cli.Command {
	c := cmdline.Command(&cli.Command{
		Name: "net", Usage: "show and change what the prison reaches",
		UsageText: "git airlock net [--json]\n" +
			"git airlock net log|allow|deny|check|explain|learn|lockdown|unlock|credential",
		Description: "Prints what the prison may reach, by which rule from which file, its connections, and what was refused last. Rules are\n" +
			"for an airlock with --network allowlist. An open network obeys those that deny.",
		Flags:  []cli.Flag{cmdline.JSONFlag},
		Action: cmdline.OnAirlock(showNetwork),
	}, cmdline.Takes{})
	c.Subcommands = []*cli.Command{
		cmdline.Subcommand("net", "log [-f] [--denied] [--json] [--verify] [REVISIONS]", "print the record of connections and refusals", cmdline.Takes{Most: 1}, netLog,
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on with new records, until ^C"},
			&cli.BoolFlag{Name: "denied", Usage: "print refusals only"}, recordsFlag,
			&cli.BoolFlag{Name: "verify", Usage: "check that no record was changed, removed or inserted"}),
		cmdline.Subcommand("net", "allow RULE [--for TIME] [--save]", "let the prison reach a host, at once", cmdline.Takes{Least: 1, Most: 1}, changeRule(network.AllowKey), forFlag, saveFlag),
		cmdline.Subcommand("net", "deny RULE [--for TIME] [--save]", "refuse a host, and end its connections, at once", cmdline.Takes{Least: 1, Most: 1}, changeRule(network.DenyKey), forFlag, saveFlag),
		cmdline.Subcommand("net", "check HOST[:PORT] [METHOD PATH]", "say whether the rules allow a host, and why", cmdline.Takes{Least: 1, Most: 3}, netCheck, cmdline.JSONFlag),
		cmdline.Subcommand("net", "explain [SEQ]", "say why something was refused, and how to allow it", cmdline.Takes{Most: 1}, netExplain, cmdline.JSONFlag),
		cmdline.Subcommand("net", "learn [--json]", "print the settings that allow what was reached", cmdline.Takes{}, netLearn, cmdline.JSONFlag),
		cmdline.Subcommand("net", "lockdown", "end all connections and refuse new ones", cmdline.Takes{}, netLock(true)),
		cmdline.Subcommand("net", "unlock", "end a lockdown", cmdline.Takes{}, netLock(false)),
		cmdline.Subcommand("net", "credential NAME [--json]", "show where a credential comes from, and whether its value can be read", cmdline.Takes{Least: 1, Most: 1}, netCredential, cmdline.JSONFlag),
	}
	return c
}

var (
	forFlag     = &cli.StringFlag{Name: "for", Usage: "how long the rule holds, such as `90m`; default: until the airlock is cleared"}
	saveFlag    = &cli.BoolFlag{Name: "save", Usage: "add the rule to the repository's git configuration, too"}
	recordsFlag = &cli.BoolFlag{Name: "json", Usage: "print one JSON document, or each record as a line with --follow"}
)

// showNetwork prints the network of an airlock. If the airlock has no network, it refuses; with --json it also prints the document.
func showNetwork(c *cli.Context, s *session.Session, r airlock.Record) error {
	n, err := s.Network(c.Context, r)
	none := r.Isolation.Network == prison.NetworkNone.String() && c.Bool(cmdline.JSONFlag.Name)
	if err != nil && !none {
		return err
	}
	recent := s.RecentRefusals(r, n.Runs)
	d := networkDocument(n, r, cmdline.RefusedHosts(recent))
	d.MoreRefusals, d.RefusedCertificate = recent.More, cmdline.RefusedCertificate(recent)
	return errors.Join(cmdline.Print(c, s, true, d, func(out io.Writer, p ui.Paint) error { return d.Print(out, p, ui.Now()) }), err)
}

func networkDocument(n session.Network, r airlock.Record, refusals []ui.Refused) ui.NetworkDocument {
	rules := network.Rules{Rules: n.Rules, Open: n.Open}
	d := ui.NetworkDocument{
		Version: ui.DocumentVersion, Network: r.Isolation.Network, Running: n.Runs, Generation: n.Rules.Generation, InForce: n.State.Generation,
		Lockdown: n.Rules.Lockdown, Learn: n.Rules.Learn, Proxy: n.Rules.Proxy, Allow: networkRules(rules, n.Rules.Allow, true), Deny: networkRules(rules, n.Rules.Deny, false),
		Admitted: n.State.Admitted, Refused: n.State.Refused, Refusals: refusals, Credentials: cmdline.Credentials(n.Rules, n.State.Credentials),
		Failure: n.State.Error, FailingProxy: cmdline.FailingProxy(n.Rules.Proxy, n.State.Proxy), Weaker: rules.DeniedByName(ui.Now()),
	}
	if n.State.Ledger != "" {
		d.Failure = n.State.Ledger
	}
	for _, f := range n.State.Flows {
		if f.Ended {
			continue
		}
		d.Flows = append(d.Flows, ui.NetworkFlow{Name: gitops.Text(f.Name).String(), Address: f.Address, Port: f.Port, Proto: f.Proto, Rule: f.Rule, Since: f.Begun, Sent: f.Sent, Received: f.Got})
	}
	return d
}

func networkRules(rules network.Rules, some []control.Rule, opaque bool) (all []ui.NetworkRule) {
	for _, r := range some {
		if r.Ended(ui.Now()) {
			continue
		}
		shown := ui.NetworkRule{Rule: r.Text, Source: r.Source, Opaque: opaque && network.Opaque(rules, r, ui.Now())}
		if !r.Until.IsZero() {
			shown.Until = &r.Until
		}
		all = append(all, shown)
	}
	return all
}

// lifetime returns when a rule of --for ends; zero for ever.
func lifetime(c *cli.Context, now time.Time) (time.Time, error) {
	if !c.IsSet(forFlag.Name) {
		return time.Time{}, nil
	}
	text := c.String(forFlag.Name) // an empty one is refused below: a script's variable may be unset
	const most = 366 * 24 * time.Hour
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d > most {
		return time.Time{}, ui.Usagef("%s: --for: %q is not a time such as 90m or 1h30m, at most %.0fh", cmdline.CommandName(c), gitops.Text(text), most.Hours())
	}
	if c.Bool(saveFlag.Name) {
		return time.Time{}, ui.Usagef("%s: --for and --save exclude each other: settings do not end", cmdline.CommandName(c))
	}
	return now.Add(d), nil
}

// changeRule returns the action that adds a rule to the running airlock, and with --save to the setting of a key: what the rule is about is
// allowed, or denied for [network.DenyKey].
func changeRule(key string) cmdline.SubAction {
	return func(c *cli.Context, s *session.Session, args []string) error { return addRule(c, s, args[0], key) }
}

func addRule(c *cli.Context, s *session.Session, text, key string) error {
	deny := key == network.DenyKey
	until, err := lifetime(c, s.Now())
	if err != nil {
		return err
	}
	r, err := s.Here(c.Context)
	if err != nil {
		return err
	}
	saved := false
	if c.Bool(saveFlag.Name) {
		var denial *control.Rule
		if saved, denial, err = network.Saved(c.Context, s.Repo, key, text, s.Now()); err != nil {
			return err
		}
		if denial != nil {
			return denied(control.Rules{}, *denial, text)
		}
	}
	var before control.Rules
	var added []control.Rule
	n, err := s.ChangeNetwork(c.Context, r, func(rules control.Rules) (control.Rules, error) {
		before = rules
		var err error
		if rules, added, err = network.With(rules, text, deny, s.Now(), until); err != nil {
			return rules, err
		}
		if deny {
			return rules, nil
		}
		if err := deniedAnyway(rules, added, s.Now()); err != nil || r.Isolation.Network != prison.NetworkOpen.String() {
			return rules, err
		}
		return endDenial(before, rules)
	})
	if err != nil {
		return err
	}
	for _, warning := range network.Warnings(added) {
		if !deny {
			s.Report.Say("%s", gitops.Text(warning))
		}
	}
	sayChange(s, n, before, added, deny)
	if c.Bool(saveFlag.Name) && !saved {
		if err := s.SaveRule(c.Context, key, text); err != nil {
			return fmt.Errorf("the rule holds for this airlock, but is not saved: %w", err)
		}
	}
	return nil
}

// denied refuses to allow what one of the rules denies.
func denied(rules control.Rules, by control.Rule, text string) error {
	return &environment.Refusal{Text: "the rule " + gitops.Text(by.Text).String() + " (" + gitops.Text(by.Source).String() + ") denies " + gitops.Text(text).String() + ", and a denial wins",
		Next: []string{network.Lift(rules, by)}}
}

// deniedAnyway refuses to allow an address that is closed, and a host that another rule denies: one of the settings, or one of net deny
// that is about more or holds for longer.
func deniedAnyway(rules control.Rules, added []control.Rule, now time.Time) error {
	for _, a := range added {
		if err := network.Void(a); err != nil {
			return &environment.Refusal{Text: gitops.Text(err.Error()).String() + ", and no rule can open it"}
		}
		if by := network.DeniedBy(rules, a, now); by != nil {
			return denied(rules, *by, a.Text)
		}
		parts, by := network.DeniedMethods(rules, a, now)
		if methods, _, _ := strings.Cut(a.Text, " "); len(parts) > strings.Count(methods, ",") {
			return denied(rules, by[0], parts[0])
		}
	}
	return nil
}

// sayDeniedMethods reports the methods of a new rule that stay denied.
func sayDeniedMethods(s *session.Session, rules control.Rules, allowed control.Rule) {
	parts, by := network.DeniedMethods(rules, allowed, s.Now())
	for i, part := range parts {
		s.Report.Say("%s is still denied, by the rule %s (%s)", gitops.Text(part), gitops.Text(by[i].Text), gitops.Text(by[i].Source))
		s.Report.Hint(network.Lift(rules, by[i]))
	}
}

// endDenial returns the rules of an open network after a rule that allows something: without the denials that the rule ends, and without
// the rule itself, since an open network needs none. It refuses a rule that ends no denial.
func endDenial(before, after control.Rules) (control.Rules, error) {
	if len(after.Deny) == len(before.Deny) {
		return before, &environment.Refusal{Text: "the network of this airlock is open: it reaches all public hosts that no rule denies", Next: []string{"git airlock net"}}
	}
	after.Allow = before.Allow
	return after, nil
}
