package policy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/bounded"
	"github.com/git-airlock/git-airlock/gitops/ignore"
)

// TeamRef names a team's policy: a commit or tree with the file [TeamFile], or the file itself.
const (
	TeamRef  = "refs/airlock/policy"
	TeamFile = "policy.toml"
)

// TeamLimit bounds the size of a policy.
const TeamLimit = 1 << 20

// Team is a policy for everyone who works on a repository. It can only make rules stricter, and name reviewers.
//
//	version = 1
//	maxFileSize = "10m"
//
//	[rules]
//	host-exec = "hold"
//
//	[network]
//	deny = ["**.paste.example"]
//
//	[exec]
//	deny = ["curl *"]
//
//	[review]
//	reviewers = ["ada@example.com"]
//
//	[check]
//	command = "make test"
//	gate = "hold"
//
//	[[paths]]
//	patterns = ["deploy/**", "*.tf"]
//	action = "hold"
//	reason = "ask the platform team"
type Team struct {
	maxFileSize int64
	actions     map[string]Action
	protected   []protection
	denials     []string
	programs    []string
	reviewers   []string
	check       treeCheck
}

// treeCheck is the command that checks trees, with the setting of its gate.
type treeCheck struct {
	command string
	hold    bool
}

// Reviewers returns the addresses of the people whose verdicts count besides the user's.
func (t Team) Reviewers() []string { return t.reviewers }

// protection is a set of paths that a team protects.
type protection struct {
	patterns []*ignore.Pattern
	action   Action
	reason   string
}

type teamFile struct {
	Version     int               `toml:"version"`
	MaxFileSize string            `toml:"maxFileSize"`
	Rules       map[string]string `toml:"rules"`
	Network     struct {
		Deny []string `toml:"deny"`
	} `toml:"network"`
	Exec struct {
		Deny []string `toml:"deny"`
	} `toml:"exec"`
	Review struct {
		Reviewers []string `toml:"reviewers"`
	} `toml:"review"`
	Check struct {
		Command string `toml:"command"`
		Gate    string `toml:"gate"`
	} `toml:"check"`
	Paths []struct {
		Patterns []string `toml:"patterns"`
		Action   string   `toml:"action"`
		Reason   string   `toml:"reason"`
	} `toml:"paths"`
}

// ParseTeam reads a team's policy. An unknown key or rule is an error. Otherwise the team would believe that a rule
// is enforced which is not.
func ParseTeam(content []byte) (Team, error) {
	if err := bounded.Usual.TOML(content); err != nil {
		if limit, ok := errors.AsType[*bounded.Error](err); ok && limit.Line > 0 {
			return Team{}, fmt.Errorf("team policy: line %d: %w", limit.Line, err)
		}
		return Team{}, fmt.Errorf("team policy: %w", err)
	}
	var f teamFile
	if err := toml.NewDecoder(bytes.NewReader(content)).DisallowUnknownFields().Decode(&f); err != nil {
		return Team{}, fmt.Errorf("team policy: %w", tomlError(err))
	}
	if f.Version != 1 {
		return Team{}, fmt.Errorf("team policy: version is %d, want 1", f.Version)
	}
	t := Team{actions: map[string]Action{}}
	for _, id := range slices.Sorted(maps.Keys(f.Rules)) {
		action, err := teamAction(f.Rules[id])
		if d, known := described()[id]; !known || d.Key == "" {
			return Team{}, fmt.Errorf("team policy: rules: %q is not a rule that can be set", gitops.Text(id))
		} else if err != nil {
			return Team{}, fmt.Errorf("team policy: rules: %s: %w", id, err)
		}
		t.actions[id] = action
	}
	if f.MaxFileSize != "" {
		var ok bool
		if t.maxFileSize, ok = parseSize(f.MaxFileSize); !ok {
			return Team{}, fmt.Errorf("team policy: maxFileSize: %q is not a size such as 50m or 100000", gitops.Text(f.MaxFileSize))
		}
	}
	t.denials, t.programs, t.reviewers = f.Network.Deny, f.Exec.Deny, f.Review.Reviewers
	for _, d := range t.programs {
		if strings.Trim(d, "*?") == "" {
			return Team{}, fmt.Errorf("team policy: exec: deny: %q matches every program", gitops.Text(d))
		}
	}
	for _, r := range t.reviewers {
		if !strings.Contains(r, "@") {
			return Team{}, fmt.Errorf("team policy: review: reviewers: %q is not an address", gitops.Text(r))
		}
	}
	t.check = treeCheck{strings.TrimSpace(f.Check.Command), f.Check.Gate == "hold"}
	if f.Check.Gate != "" && !t.check.hold {
		return Team{}, fmt.Errorf("team policy: check: gate: %q is not hold", gitops.Text(f.Check.Gate))
	}
	for n, p := range f.Paths {
		made, err := newProtection(p.Patterns, p.Action, p.Reason)
		if err != nil {
			return Team{}, fmt.Errorf("team policy: paths %d: %w", n+1, err)
		}
		t.protected = append(t.protected, made)
	}
	return t, nil
}

func newProtection(patterns []string, action, reason string) (protection, error) {
	p := protection{reason: reason}
	var err error
	if p.action, err = teamAction(action); err != nil {
		return p, fmt.Errorf("action: %w", err)
	}
	if len(patterns) == 0 {
		return p, errors.New("patterns: none")
	}
	for _, text := range patterns {
		compiled, ok := ignore.Parse(text)
		if !ok || compiled.Negative {
			return p, fmt.Errorf("patterns: %q is not a pattern as in gitignore(5) without \"!\"", gitops.Text(text))
		}
		p.patterns = append(p.patterns, compiled)
	}
	return p, nil
}

// teamAction reads an action of a team's policy. "off" is refused, because it cannot be stricter than any setting.
func teamAction(text string) (Action, error) {
	action, err := parseAction(text)
	if err != nil || action == Off {
		return Hold, fmt.Errorf("%q is not hold or flag", gitops.Text(text))
	}
	return action, nil
}

// tomlError describes where a TOML file is wrong, in one line and escaped.
func tomlError(err error) error {
	if strict, ok := errors.AsType[*toml.StrictMissingError](err); ok && len(strict.Errors) > 0 {
		row, _ := strict.Errors[0].Position()
		return fmt.Errorf("line %d: unknown key %q", row, gitops.Text(fmt.Sprint(strict.Errors[0].Key())))
	}
	if decode, ok := errors.AsType[*toml.DecodeError](err); ok {
		row, column := decode.Position()
		return fmt.Errorf("line %d, column %d: %s", row, column, gitops.Text(decode.Error()))
	}
	return errors.New(gitops.Text(err.Error()).String())
}

// With returns the settings together with a team's policy. Each rule gets the stricter action of both.
func (s Settings) With(t Team) Settings {
	w := Settings{maxFileSize: s.maxFileSize, sizeFrom: s.sizeFrom, work: s.work, seconds: s.seconds, protected: slices.Concat(s.protected, t.protected),
		denials: slices.Concat(s.denials, t.denials), programs: slices.Concat(s.programs, t.programs),
		check:   treeCheck{cmp.Or(t.check.command, s.check.command), s.check.hold || t.check.hold},
		actions: map[string]Action{}, sources: map[string]Source{}}
	maps.Copy(w.actions, s.actions)
	maps.Copy(w.sources, s.sources)
	wanted := maps.Clone(t.actions)
	if len(t.protected) > 0 {
		wanted[protectedPathID] = Hold // each set of paths has its own action
	}
	if _, set := wanted[largeFileID]; t.maxFileSize != 0 && !set {
		wanted[largeFileID] = Hold // a size without its rule would mean nothing
	}
	for id, action := range wanted {
		if action < s.Action(id) { // the lower action is the stricter one
			w.actions[id], w.sources[id] = action, fromTeam
		}
	}
	if t.maxFileSize != 0 && t.maxFileSize < s.MaxFileSize() {
		w.maxFileSize, w.sizeFrom = t.maxFileSize, fromTeam
	}
	return w
}

const protectedPathID = "protected-path"

// protectedPath finds changes of paths that a team protects.
type protectedPath struct{ guards []protection }

func (p protectedPath) change(_ context.Context, in *inspection, c gitops.Change, r *report) error {
	for _, g := range p.guards {
		if err := in.meter.spend(int64(len(g.patterns) * len(c.Path))); err != nil {
			return err
		}
		link := c.New.Mode == gitops.ModeLink || c.Old.Mode == gitops.ModeLink
		if g.covers(c.Path) || link && g.covers(c.Path+"/x") { // a link counts as a folder
			add := r.at
			if g.action == Flag {
				add = r.mention
			}
			add(c.Path, "protected by the team's policy: %s", cmp.Or(g.reason, "no reason given"))
		}
	}
	return nil
}

func (g protection) covers(path string) bool {
	return slices.ContainsFunc(g.patterns, func(p *ignore.Pattern) bool { return p.Matches(path) })
}
