package net

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/network"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/ledger"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/words"
)

// sayChange reports a rule that was added, and what difference it makes.
func sayChange(s *session.Session, n session.Network, before control.Rules, added []control.Rule, deny bool) {
	word := "allowed"
	if deny {
		word = "denied"
	}
	for _, a := range added {
		text := fmt.Sprintf("%s is %s%s", a.Text, word, end(a))
		was := network.Decides(before, a, deny, s.Now())
		switch {
		case was == nil, !deny && network.DeniedBy(before, a, s.Now()) != nil:
		case network.Outlasts(a, *was):
			if a.Until.IsZero() {
				text += " without an end"
			}
			text += fmt.Sprintf(", and was%s, by the rule %s (%s)", end(*was), was.Text, was.Source)
		default:
			text = fmt.Sprintf("%s was %s before%s, by the rule %s (%s)", a.Text, word, end(*was), was.Text, was.Source)
		}
		s.Report.Say("%s", gitops.Text(text))
		if !deny {
			sayDeniedMethods(s, n.Rules, a)
		} else {
			sayOtherPorts(s, n.Rules, a)
			if rest := network.StillReached(network.Rules{Rules: n.Rules, Open: n.Open}, a); rest != "" {
				s.Report.Say("still reached: %s", gitops.Text(rest))
			}
		}
	}
	switch {
	case s.Dry:
		s.Report.Say("nothing is changed")
	case !n.Runs:
		s.Report.Say("the prison is not running: the rule holds when it starts")
	case n.State.Closed > 0:
		s.Report.Say("%s ended", words.Count(n.State.Closed, "connection"))
	}
}

// sayOtherPorts names the rules that still allow the host of a denial, at ports that the denial does not cover.
func sayOtherPorts(s *session.Session, rules control.Rules, denied control.Rule) {
	for _, allowed := range rules.Allow {
		if !allowed.Ended(s.Now()) && strings.HasPrefix(allowed.Text, denied.Text+":") && network.DeniedBy(rules, allowed, s.Now()) == nil {
			s.Report.Say("%s is still allowed, by %s", gitops.Text(allowed.Text), gitops.Text(allowed.Source))
			s.Report.Hint("git airlock net deny " + gitops.Text(strings.Fields(allowed.Text)[0]).String())
		}
	}
}

// end returns the words for the end of a rule; empty if it does not end.
func end(r control.Rule) string {
	if r.Until.IsZero() {
		return ""
	}
	return " until " + r.Until.Local().Format(time.DateTime)
}

// netLock returns the action that begins, or ends, a lockdown.
func netLock(lock bool) cmdline.SubAction {
	return func(c *cli.Context, s *session.Session, _ []string) error {
		r, err := s.Here(c.Context)
		if err != nil {
			return err
		}
		n, err := s.ChangeNetwork(c.Context, r, func(rules control.Rules) (control.Rules, error) {
			rules.Lockdown = lock
			return rules, nil
		})
		switch {
		case err != nil:
			return err
		case s.Dry:
			s.Report.Say("nothing is changed")
		case lock:
			ended := "the prison is not running"
			if n.Runs {
				ended = words.Count(n.State.Closed, "connection") + " ended"
			}
			s.Report.Say("locked down: nothing is reached; %s", ended)
			s.Report.Hint("git airlock net unlock")
		default:
			s.Report.Say("unlocked: the rules decide again")
		}
		return nil
	}
}

// checkDocument is version 1 of what net check --json prints.
type checkDocument struct {
	Version   int              `json:"version"`
	Host      string           `json:"host"`
	Port      uint16           `json:"port"`
	Allowed   bool             `json:"allowed"`
	Rule      string           `json:"rule"`
	Source    string           `json:"source"`
	Reason    string           `json:"reason"`
	Addresses []checkedAddress `json:"addresses"`

	closed bool // the rules allow the target, but a prison must not be led to it or to its addresses
}

type checkedAddress struct {
	Address string `json:"address"`
	Public  bool   `json:"public"` // a prison may be led there
	Reason  string `json:"reason"`
}

// netCheck checks a host by the rules of the airlock, or of the settings if there is no airlock. It looks a name up only if the rules
// allow the name.
func netCheck(c *cli.Context, s *session.Session, args []string) error {
	t, err := network.ParseTarget(args[0])
	if err != nil {
		return ui.Usagef("net check: %s", gitops.Text(err.Error()))
	}
	if len(args) == 2 || len(args) == 3 && !strings.HasPrefix(args[2], "/") {
		return ui.Usagef("net check: want HOST[:PORT] or HOST[:PORT] METHOD /PATH")
	}
	if len(args) == 3 {
		t = t.ForRequest(args[1], args[2])
	}
	rules, err := s.RulesHere(c.Context)
	if refused, ok := errors.AsType[*environment.Refusal](err); ok && c.Bool(cmdline.JSONFlag.Name) { // an airlock without a network
		d := checkDocument{Version: ui.DocumentVersion, Host: t.Host, Port: t.Port, Reason: refused.Text}
		return errors.Join(ui.PrintJSON(c.App.Writer, d), err)
	}
	if err != nil {
		return err
	}
	v := network.Check(c.Context, rules, t, s.Now())
	d := checkDocument{Version: ui.DocumentVersion, Host: t.Host, Port: t.Port, Allowed: v.Allowed, Reason: v.Reason, closed: v.Spoiled}
	if v.Rule != nil {
		d.Rule, d.Source = v.Rule.Text, v.Rule.Source
	}
	for _, a := range v.Addresses {
		shown := checkedAddress{Address: a.Text, Public: a.Err == nil}
		if a.Err != nil {
			shown.Reason = a.Err.Error()
		}
		d.Addresses = append(d.Addresses, shown)
	}
	if c.Bool(cmdline.JSONFlag.Name) {
		err = ui.PrintJSON(c.App.Writer, d)
	} else {
		err = d.print(c.App.Writer)
	}
	if err == nil && !d.Allowed {
		err = cmdline.Shown(&environment.Refusal{Text: d.Reason})
	}
	return err
}

func (d checkDocument) print(out io.Writer) error {
	var b strings.Builder
	word, rule := "refused", gitops.Text(d.Rule).String()+" ("+gitops.Text(d.Source).String()+")"
	if d.Allowed {
		word = "allowed"
	}
	fmt.Fprintf(&b, "%s: %s", ui.HostPort(d.Host, d.Port), word)
	switch {
	case d.closed && d.Rule != "":
		fmt.Fprintf(&b, ", although the rule %s allows it: %s", rule, gitops.Text(d.Reason))
	case d.Rule != "":
		fmt.Fprintf(&b, " by the rule %s", rule)
	default:
		fmt.Fprintf(&b, ": %s", gitops.Text(d.Reason))
	}
	b.WriteByte('\n')
	for _, a := range d.Addresses {
		fmt.Fprintf(&b, "  %s %s\n", a.Address, map[bool]string{true: "public", false: gitops.Text(a.Reason).String()}[a.Public])
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// netLog prints the ledger.
func netLog(c *cli.Context, s *session.Session, args []string) error {
	follow, verify := c.Bool("follow"), c.Bool("verify")
	if (len(args) > 0 || verify) && follow || len(args) > 0 && verify {
		return ui.Usagef("net log: --follow, --verify and a revision exclude each other")
	}
	p := &recordPrinter{denied: c.Bool("denied"), lines: follow, asJSON: c.Bool(recordsFlag.Name)}
	if len(args) > 0 {
		err := logOf(c, s, args[0], p)
		if err == nil {
			err = p.end(c.App.Writer)
		}
		return err
	}
	dir, err := s.LedgerDir(c.Context)
	if err != nil {
		return err
	}
	if verify {
		return verifyLedger(c, s, dir)
	}
	var found ledger.Report
	var oldest uint64
	all := func(out io.Writer, paint ui.Paint) (err error) {
		var failed error
		show := func(r control.Record) bool { failed = cmp.Or(failed, p.print(out, paint, r)); return failed == nil }
		if oldest, err = ledger.Rotated(dir, func(r control.Record) { show(r) }); err == nil {
			found, err = ledger.Read(dir, show)
		}
		return errors.Join(err, failed)
	}
	if p.asJSON || follow {
		err = all(c.App.Writer, cmdline.Painted(s))
	} else {
		err = cmdline.Show(c, s, true, all)
	}
	if err == nil {
		err = p.end(c.App.Writer)
	}
	if err != nil {
		return err
	}
	if oldest > 1 {
		s.Report.Say("the record begins with number %d: beyond 50 MiB the oldest are removed, but for what a rule denies", oldest)
	}
	for _, d := range found.Damages {
		s.Report.Say("the record was changed, or is damaged: %s", gitops.Text(d.String()))
	}
	if follow {
		return ledger.Follow(c.Context, dir, found.Last, func(r control.Record) error { return p.print(c.App.Writer, cmdline.Painted(s), r) })
	}
	return nil
}

// recordPrinter prints records in the form that the options select.
type recordPrinter struct {
	denied bool // only refusals
	asJSON bool
	lines  bool // with asJSON, a document for each record, and not one for all

	kept []control.Record // for the document
}

func (p *recordPrinter) print(out io.Writer, paint ui.Paint, r control.Record) (err error) {
	switch {
	case p.denied && r.Kind != control.KindRefusal:
	case p.asJSON && p.lines:
		err = json.NewEncoder(out).Encode(network.Shown(r))
	case p.asJSON:
		p.kept = append(p.kept, network.Shown(r))
	default:
		_, err = fmt.Fprintln(out, recordLine(paint, r))
	}
	return err
}

// end prints the document, if there is one.
func (p *recordPrinter) end(out io.Writer) error {
	if !p.asJSON || p.lines {
		return nil
	}
	return ui.PrintJSON(out, recordsDocument{ui.DocumentVersion, p.kept})
}

// recordsDocument is version 1 of what net log --json prints.
type recordsDocument struct {
	Version int              `json:"version"`
	Records []control.Record `json:"records"`
}

// verifyLedger checks the chain of the whole record.
func verifyLedger(c *cli.Context, s *session.Session, dir string) error {
	found, err := ledger.Verify(dir)
	if err != nil {
		return err
	}
	for _, d := range found.Damages {
		s.Report.Say("%s", gitops.Text(d.String()))
	}
	if len(found.Damages) > 0 {
		return errors.New("the record was changed, or is damaged")
	}
	_, err = fmt.Fprintf(c.App.Writer, "%s, the last is %d: each continues the one before it\nSHA-256 of the last: %s\n",
		words.Count(found.Records, "record"), found.Last, found.Head)
	return err
}

// loggedCommits bounds the commits of a revision range whose windows are printed.
const loggedCommits = 1000

// logOf prints the notes about the network of the commits of a revision or range, and the records of their windows that the
// ledger of the airlock here has.
func logOf(c *cli.Context, s *session.Session, revisions string, printer *recordPrinter) error {
	var notes bytes.Buffer
	if err := s.Repo.Log(c.Context, s.Repo.Top, &notes, false, "--no-walk=unsorted", fmt.Sprint("--max-count=", loggedCommits),
		"--notes="+promote.EgressRef, "--encoding=UTF-8", "--format=commit %h %s%n%N", "--end-of-options", revisions, "--"); err != nil {
		return err
	}
	here, dir := "", ""
	if r, err := s.Here(c.Context); err == nil {
		if dir, err = s.LedgerDir(c.Context); err == nil {
			here = r.Session
		}
	}
	return cmdline.Show(c, s, !printer.asJSON, func(out io.Writer, p ui.Paint) (err error) {
		session := ""
		for line := range strings.Lines(notes.String()) {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			if !printer.asJSON {
				if _, err := fmt.Fprintln(out, line); err != nil {
					return err
				}
			}
			key, value, _ := strings.Cut(line, ": ")
			var first, last uint64
			switch {
			case strings.HasPrefix(line, "commit "):
				session = ""
			case key == "Airlock-Session":
				session = value
			case key == "Airlock-Records" && session == here && here != "":
				if n, _ := fmt.Sscanf(value, "%d-%d", &first, &last); n != 2 || first == 0 {
					continue
				}
				failed := ledger.Range(dir, first-1, last, func(r control.Record) { err = errors.Join(err, printer.print(out, p, r)) })
				if err = errors.Join(failed, err); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// recordLine returns a record as a line for people. All text in it is escaped.
func recordLine(p ui.Paint, r control.Record) string {
	t := network.TargetOf(r)
	parts := []string{r.Proto}
	if t.Host != "" {
		parts = append(parts, ui.HostPort(t.Host, t.Port))
	}
	if r.Method != "" {
		parts = append(parts, r.Method, r.Path)
	}
	if r.Status != 0 {
		parts = append(parts, strconv.Itoa(r.Status))
	}
	text := strings.TrimSpace(strings.Join(parts, " "))
	if r.Kind == control.KindPolicy {
		text, r.Reason, r.Rule = r.Reason+" ("+r.Rule+")", "", ""
	}
	for _, about := range []struct{ before, what string }{{": ", r.Reason}, {", by ", r.Rule}} {
		if text == "" {
			text = about.what
		} else if about.what != "" {
			text += about.before + about.what
		}
	}
	if r.Sent+r.Received > 0 {
		text += fmt.Sprintf(", %s sent, %s received", words.Bytes(r.Sent), words.Bytes(r.Received))
	}
	if r.Count > 1 {
		text += ", " + words.Count(r.Count, "time")
	}
	word := r.Kind
	if r.Verdict != "" && r.Kind != control.KindRefusal {
		word += " " + r.Verdict
	}
	word = gitops.Text(fmt.Sprintf("%-14s", word)).String()
	if r.Kind == control.KindRefusal || r.Kind == control.KindAlarm {
		word = p.Red(word)
	}
	return fmt.Sprintf("%5d  %s  %s %s", r.Seq, r.Time.Local().Format(time.DateTime), word, gitops.Text(text))
}

// explainDocument is version 1 of what net explain --json prints.
type explainDocument struct {
	Version int            `json:"version"`
	Record  control.Record `json:"record"`
	Allowed bool           `json:"allowed"` // by now
	Rule    string         `json:"rule"`    // that decides now
	Source  string         `json:"source"`
	Next    ui.Commands    `json:"next"`
}

// netExplain explains a record, or the last refusal. A program that does not accept the network's certificate refuses as well.
func netExplain(c *cli.Context, s *session.Session, args []string) error {
	var wanted uint64
	if len(args) > 0 {
		var err error
		if wanted, err = strconv.ParseUint(args[0], 10, 64); err != nil || wanted == 0 {
			return ui.Usagef("net explain: %q is not a number from the first column of git airlock net log", gitops.Text(args[0]))
		}
	}
	dir, err := s.LedgerDir(c.Context)
	if err != nil {
		return err
	}
	found, unaccepted := (*control.Record)(nil), network.Unaccepted{}
	_, err = ledger.Read(dir, func(r control.Record) bool {
		if wanted == 0 && r.Kind == control.KindRefusal && network.TargetOf(r).Host != "" || r.Seq == wanted && wanted != 0 {
			found = &r
		}
		unaccepted.Add(r)
		return found == nil || wanted == 0
	})
	if wanted == 0 {
		found = unaccepted.Newer(found)
	}
	switch {
	case err != nil:
		return err
	case found == nil && wanted != 0:
		return environment.Advise(fmt.Errorf("there is no record %d", wanted), "git airlock net log")
	case found == nil:
		return errors.New("nothing was refused")
	}
	rules, err := s.RulesHere(c.Context)
	if err != nil {
		return err
	}
	now := network.DecideAgain(rules, *found, s.Now())
	d := explainDocument{Version: ui.DocumentVersion, Record: network.Shown(*found), Allowed: now.Allowed}
	if now.Rule != nil {
		d.Rule, d.Source = now.Rule.Text, now.Rule.Source
	}
	if found.Kind == control.KindRefusal || found.Unaccepted() {
		d.Next = network.Next(rules, *found, s.Now())
	}
	if c.Bool(cmdline.JSONFlag.Name) {
		return ui.PrintJSON(c.App.Writer, d)
	}
	said := append([]string{recordLine(cmdline.Painted(s), *found)}, network.Risks(rules, *found, s.Now())...)
	return d.print(c.App.Writer, strings.Join(said, "\n"))
}

// print prints a document, after the text of its record.
func (d explainDocument) print(out io.Writer, record string) error {
	lines := []string{record}
	if d.Rule != "" {
		word := "refuses"
		if d.Allowed {
			word = "allows"
		}
		lines = append(lines, gitops.Text(fmt.Sprintf("now the rule %s (%s) %s it", d.Rule, d.Source, word)).String())
	}
	for _, next := range d.Next {
		command, comment := words.CutComment(next)
		if lines = append(lines, command); comment != "" {
			lines = append(lines, "  # "+comment)
		}
	}
	_, err := io.WriteString(out, strings.Join(lines, "\n")+"\n")
	return err
}

// netLearn prints the settings that allow what was reached, and nothing else.
func netLearn(c *cli.Context, s *session.Session, _ []string) error {
	dir, err := s.LedgerDir(c.Context)
	if err != nil {
		return err
	}
	var learned network.Learned
	if _, err := ledger.Read(dir, func(r control.Record) bool { learned.Add(r); return true }); err != nil {
		return err
	}
	if c.Bool(cmdline.JSONFlag.Name) {
		return ui.PrintJSON(c.App.Writer, map[string]any{"version": ui.DocumentVersion, "rules": learned.Rules()})
	}
	for _, rule := range learned.Rules() {
		if _, err := fmt.Fprintf(c.App.Writer, "git config --add %s %s\n", network.AllowKey, gitops.Pasteable(rule)); err != nil {
			return err
		}
	}
	return nil
}
