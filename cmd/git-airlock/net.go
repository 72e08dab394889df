package main

import (
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/network"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

func netCommand(inside []string) *cli.Command {
	c := command(&cli.Command{
		Name: "net", Usage: "show and change what the prison reaches",
		UsageText: "git airlock net [--json]\n" +
			"git airlock net log|allow|deny|check|explain|learn|lockdown|unlock",
		Description: "Prints what the prison may reach, by which rule from which file, its connections, and what was refused last. Rules are\n" +
			"for an airlock with --network allowlist. An open network obeys those that deny.",
		Flags:  []cli.Flag{jsonFlag},
		Action: onAirlock(showNetwork),
	}, inside, false)
	c.Subcommands = []*cli.Command{
		netSubcommand(inside, "log [-f] [--denied] [--json]", "print the record of connections and refusals", 0, 1, netLog,
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on with new records, until ^C"},
			&cli.BoolFlag{Name: "denied", Usage: "print refusals only"}, recordsFlag),
		netSubcommand(inside, "allow RULE [--for TIME] [--save]", "let the prison reach a host, at once", 1, 1, netAllow, forFlag, saveFlag),
		netSubcommand(inside, "deny RULE [--for TIME] [--save]", "refuse a host, and end its connections, at once", 1, 1, netDeny, forFlag, saveFlag),
		netSubcommand(inside, "check HOST[:PORT] [METHOD PATH]", "say whether the rules allow a host, and why", 1, 3, netCheck, jsonFlag),
		netSubcommand(inside, "explain [SEQ]", "say why something was refused, and how to allow it", 0, 1, netExplain, jsonFlag),
		netSubcommand(inside, "learn [--json]", "print the settings that allow what was reached", 0, 0, netLearn, jsonFlag),
		netSubcommand(inside, "lockdown", "end all connections and refuse new ones", 0, 0, netLock(true)),
		netSubcommand(inside, "unlock", "end a lockdown", 0, 0, netLock(false)),
		netSubcommand(inside, "credential NAME", "show where a credential comes from", 1, 1, netCredential),
	}
	c.Subcommands[len(c.Subcommands)-1].Hidden = true // nothing can use one yet
	return c
}

var (
	forFlag     = &cli.StringFlag{Name: "for", Usage: "how long the rule holds, such as `90m`; default: until the airlock is cleared"}
	saveFlag    = &cli.BoolFlag{Name: "save", Usage: "add the rule to the repository's git configuration, too"}
	recordsFlag = &cli.BoolFlag{Name: "json", Usage: "print each record as a line of JSON"}
)

// netAction is what a subcommand does with its arguments.
type netAction func(c *cli.Context, s *session.Session, args []string) error

// netSubcommand describes a subcommand that takes from least to most arguments.
func netSubcommand(inside []string, synopsis, usage string, least, most int, act netAction, flags ...cli.Flag) *cli.Command {
	name, _, _ := strings.Cut(synopsis, " ")
	c := command(&cli.Command{Name: name, Usage: usage, UsageText: "git airlock net " + synopsis, Flags: flags, ArgsUsage: synopsis}, inside, false)
	c.Action = func(c *cli.Context) error {
		args, err := arguments(c, least, most)
		switch {
		case err != nil:
		case inside != nil:
			err = ui.Usagef("net %s takes no command", name)
		default:
			err = inRepository(func(c *cli.Context, s *session.Session) error { return act(c, s, args) })(c)
		}
		return ui.Within(commandName(c), asUsageError(err))
	}
	return c
}

// arguments returns the arguments of a subcommand. Options may follow them, as in "net allow HOST --for 1h".
func arguments(c *cli.Context, least, most int) (args []string, err error) {
	rest := c.Args().Slice()
	for i := 0; i < len(rest); i++ {
		name, value, valued := strings.Cut(strings.TrimLeft(rest[i], "-"), "=")
		if !strings.HasPrefix(rest[i], "-") {
			args = append(args, rest[i])
			continue
		}
		if o := pageOf(c).Option("--" + name); o != nil && !valued {
			value = "true"
			if o.Value != "" && i+1 < len(rest) {
				i++
				value = rest[i]
			}
		}
		if err := c.Set(name, value); err != nil {
			return nil, ui.Usagef("%s: option %s: %s", commandName(c), gitops.Text(rest[i]).String(), gitops.Text(err.Error()).String())
		}
	}
	switch {
	case len(args) < least:
		return nil, ui.Usagef("%s: %s is missing", commandName(c), strings.Fields(c.Command.ArgsUsage)[1+len(args)])
	case len(args) > most:
		return nil, ui.Usagef("%s: unexpected argument %q", commandName(c), args[most])
	}
	return args, nil
}

// showNetwork prints the network of an airlock.
func showNetwork(c *cli.Context, s *session.Session, r airlock.Record) error {
	n, err := s.Network(c.Context, r)
	if err != nil {
		return err
	}
	d := networkDocument(n, r, refusedHosts(n.Rules, s.RecentRefusals(r).Records))
	if c.Bool(jsonFlag.Name) {
		return ui.PrintJSON(c.App.Writer, d)
	}
	return show(c.Context, s, "net", true, func(out io.Writer, p ui.Paint) error { return d.Print(out, p, ui.Now()) })
}

func networkDocument(n session.Network, r airlock.Record, refusals []ui.Refused) ui.NetworkDocument {
	d := ui.NetworkDocument{
		Version: ui.DocumentVersion, Network: r.Isolation.Network, Running: n.Runs, Generation: n.Rules.Generation, InForce: n.State.Generation,
		Lockdown: n.Rules.Lockdown, Learn: n.Rules.Learn, Allow: networkRules(n.Rules.Allow, true), Deny: networkRules(n.Rules.Deny, false),
		Flows: []ui.NetworkFlow{}, Admitted: n.State.Admitted, Refused: n.State.Refused, Refusals: refusals, Credentials: []string{},
		Failure: n.State.Error,
	}
	if n.State.Ledger != "" {
		d.Failure = n.State.Ledger
	}
	for _, f := range n.State.Flows {
		d.Flows = append(d.Flows, ui.NetworkFlow{Name: gitops.Text(f.Name).String(), Address: f.Address, Port: f.Port, Proto: f.Proto, Rule: f.Rule, Since: f.Begun, Sent: f.Sent, Received: f.Got})
	}
	return d
}

func networkRules(rules []control.Rule, opaque bool) []ui.NetworkRule {
	all := []ui.NetworkRule{}
	for _, r := range rules {
		if !network.Holds(r, ui.Now()) {
			continue
		}
		shown := ui.NetworkRule{Rule: r.Text, Source: r.Source, Opaque: opaque && network.Opaque(r)}
		if !r.Until.IsZero() {
			shown.Until = &r.Until
		}
		all = append(all, shown)
	}
	return all
}

// refusedHosts adds the commands that would allow what was refused.
func refusedHosts(rules control.Rules, records []control.Record) []ui.Refused {
	all := []ui.Refused{}
	for _, r := range records {
		t := network.TargetOf(r)
		all = append(all, ui.Refused{Seq: r.Seq, Host: gitops.Text(t.Host).String(), Port: t.Port, Reason: gitops.Text(r.Reason).String(), Count: r.Count, Time: r.Time, Next: nextFor(rules, r), Rules: network.Suggestions(t, r.Address)})
	}
	return all
}

// nextFor returns the commands that would allow what a record is about, the narrowest first.
func nextFor(rules control.Rules, r control.Record) (next []string) {
	t := network.TargetOf(r)
	now := network.Judge(rules, t, ui.Now())
	switch {
	case rules.Lockdown:
		return []string{"git airlock net unlock"}
	case now.Rule != nil && !now.Allowed && now.Rule.Source != network.Live:
		return []string{"git config --show-origin --get-all " + network.DenyKey}
	}
	for i, rule := range network.Suggestions(t, r.Address) {
		allow := "git airlock net allow " + gitops.Pasteable(rule)
		if i == 0 {
			next = append(next, allow, allow+" --for 1h", allow+" --save")
			continue
		}
		next = append(next, allow)
	}
	return next
}

// lifetime returns when a rule of --for ends; zero for ever.
func lifetime(c *cli.Context, now time.Time) (time.Time, error) {
	text := c.String(forFlag.Name)
	if text == "" {
		return time.Time{}, nil
	}
	const most = 366 * 24 * time.Hour
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d > most {
		return time.Time{}, ui.Usagef("%s: --for: %q is not a time such as 90m or 1h30m, at most %.0fh", commandName(c), gitops.Text(text).String(), most.Hours())
	}
	if c.Bool(saveFlag.Name) {
		return time.Time{}, ui.Usagef("%s: --for and --save exclude each other: settings do not end", commandName(c))
	}
	return now.Add(d), nil
}

func netAllow(c *cli.Context, s *session.Session, args []string) error {
	return changeRule(c, s, args[0], false, network.AllowKey)
}

func netDeny(c *cli.Context, s *session.Session, args []string) error {
	return changeRule(c, s, args[0], true, network.DenyKey)
}

// changeRule adds a rule to the running airlock, and to the settings with --save.
func changeRule(c *cli.Context, s *session.Session, text string, deny bool, key string) error {
	until, err := lifetime(c, s.Now())
	if err != nil {
		return err
	}
	r, err := s.Here(c.Context)
	if err != nil {
		return err
	}
	if !deny && r.Isolation.Network == prison.NetworkOpen.String() {
		return &environment.Refusal{Text: "the network of this airlock is open: it reaches all public hosts that no rule denies", Next: []string{"git airlock net"}}
	}
	var before control.Rules
	var added []control.Rule
	n, err := s.ChangeNetwork(c.Context, r, func(rules control.Rules) (control.Rules, error) {
		before = rules
		var err error
		if rules, added, err = network.With(rules, text, deny, until); err != nil {
			return rules, err
		}
		return rules, deniedAnyway(rules, added, deny, s.Now())
	})
	if err != nil {
		return err
	}
	if c.Bool(saveFlag.Name) {
		if err := s.SaveRule(c.Context, key, text); err != nil {
			return err
		}
	}
	for _, warning := range network.Warnings(added) {
		if !deny {
			s.Report.Say("%s", gitops.Text(warning).String())
		}
	}
	sayChange(s, n, before, added, deny, until)
	return nil
}

// deniedAnyway refuses to allow a host that a rule of the settings denies.
func deniedAnyway(rules control.Rules, added []control.Rule, deny bool, now time.Time) error {
	if deny {
		return nil
	}
	for _, a := range added {
		if by := network.DeniedBy(rules, a, now); by != nil {
			return &environment.Refusal{Text: "the rule " + gitops.Text(by.Text).String() + " (" + gitops.Text(by.Source).String() + ") denies " + gitops.Text(a.Text).String() + ", and a denial wins",
				Next: []string{"git config --show-origin --get-all " + network.DenyKey}}
		}
	}
	return nil
}
