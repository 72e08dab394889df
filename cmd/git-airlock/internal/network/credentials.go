package network

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/egress"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/credential"
	"github.com/git-airlock/git-airlock/prison/egress/credential/secret"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/words"
)

// credentialKey begins the settings of a credential: airlock.credential.NAME.source and so on.
const credentialKey = "airlock.credential."

// draft is a credential while its settings are read.
type draft struct {
	service
	source           string
	ownHosts         bool // a setting has replaced those of the service
	variables, paths []string
	limit            int
	plain            bool // mode=base
}

var (
	credentialName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`) })
	headerName     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,63}$`) })
)

// credentials reads the settings of credentials. It adds a credential for each of the agent's variables in keys that no setting names, and
// one for the agent's login.
func credentials(repo *gitops.Repository, settings []gitops.Setting, keys []string, login airlock.Login) (all []control.Credential, err error) {
	var drafts []draft
	for _, s := range settings {
		rest, ok := strings.CutPrefix(s.Key, credentialKey)
		name, field, dotted := strings.Cut(rest, ".")
		if !ok || !dotted {
			continue
		}
		from := s.Key
		if s.File != "" {
			from += " in " + s.File
		}
		if inTree(repo, s.File) {
			return nil, &RuleError{Source: from, Err: errInTree,
				Next: []string{"git config --global " + s.Key + " " + gitops.Pasteable(s.Value)}}
		}
		if !credentialName().MatchString(name) {
			return nil, &RuleError{Source: from, Err: errors.New("the name of a credential has small letters, digits and hyphens")}
		}
		i := slices.IndexFunc(drafts, func(d draft) bool { return d.name == name })
		if i < 0 {
			known, _ := serviceOf(func(s service) bool { return s.name == name })
			known.name = name
			i, drafts = len(drafts), append(drafts, draft{service: known})
		}
		if err := drafts[i].set(field, s.Value); err != nil {
			return nil, &RuleError{Source: from, Err: err, Next: []string{"git airlock help net"}}
		}
	}
	for _, key := range keys {
		s, known := serviceOf(func(s service) bool { return s.variable == key })
		i := slices.IndexFunc(drafts, func(d draft) bool { return d.name == s.name || slices.Contains(d.places(), key) })
		switch {
		case !known:
		case i < 0:
			drafts = append(drafts, draft{service: s, source: "env:" + key})
		case drafts[i].source == "" && drafts[i].name == s.name: // other settings alone, such as a limit
			drafts[i].source = "env:" + key
		}
	}
	if d, use := ofLogin(login, drafts); use {
		drafts = append(drafts, d)
	}
	for _, d := range drafts {
		c, err := d.credential()
		if err != nil {
			return nil, &RuleError{Source: credentialKey + d.name, Err: err, Next: []string{"git airlock help net"}}
		}
		all = append(all, c)
	}
	return all, nil
}

// set applies one setting to a credential. host, env and paths can have several values, which together replace those of a known service.
func (d *draft) set(field, value string) error {
	switch field {
	case "source":
		d.source = value
	case "host":
		if !d.ownHosts {
			d.hosts, d.ownHosts = nil, true
		}
		if !slices.Contains(d.hosts, value) { // a start with "git -c" also keeps it
			d.hosts = append(slices.Clone(d.hosts), value)
		}
	case "header":
		d.header = value
	case "format":
		d.format = value
	case "env":
		if !slices.Contains(d.variables, value) {
			d.variables = append(d.variables, value)
		}
	case "paths":
		for path := range strings.FieldsSeq(strings.ReplaceAll(value, ",", " ")) {
			if !slices.Contains(d.paths, path) {
				d.paths = append(d.paths, path)
			}
		}
	case "methods":
		d.methods = strings.ReplaceAll(value, " ", "")
	case "mode":
		if d.plain = value == "base"; !d.plain && value != "tls" {
			return errors.New("want tls or base")
		}
	case "limit":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 {
			return errors.New("want a number of requests a day")
		}
		d.limit = n
	default:
		return errors.New("unknown; the settings of a credential are source, host, header, format, env, paths, methods, mode and limit")
	}
	return nil
}

// places returns the variables that have the placeholder inside.
func (d *draft) places() []string {
	if len(d.variables) > 0 || d.variable == "" {
		return d.variables
	}
	return []string{d.variable}
}

// credential checks that nothing is missing, and returns the credential in the form for the network.
func (d *draft) credential() (c control.Credential, err error) {
	switch {
	case d.source == "":
		return c, errors.New("source is missing: want " + secret.Forms)
	case len(d.hosts) == 0:
		return c, errors.New("host is missing: this name is not a known service")
	case len(d.places()) == 0:
		return c, errors.New("env is missing: the variable that has a placeholder inside")
	}
	d.header = cmp.Or(d.header, authorization)
	if d.format == "" {
		if d.format = "%s"; d.header == authorization {
			d.format = bearer
		}
	}
	if !headerName().MatchString(d.header) {
		return c, fmt.Errorf("header: %q is not the name of a header", clip(d.header))
	}
	if err := credential.CheckFormat(d.format); err != nil {
		return c, fmt.Errorf("format: %w", err)
	}
	for _, name := range d.places() {
		if !prison.IsVariableName(name) {
			return c, fmt.Errorf("env: %q is not the name of a variable", clip(name))
		}
	}
	paths := d.paths
	if len(paths) == 0 {
		paths = []string{""}
	}
	c = control.Credential{Name: d.name, Header: d.header, Format: d.format, Variables: d.places(), Limit: d.limit, Source: d.source, Base: d.plain, With: d.with}
	if variable, path, known := strings.Cut(d.base, "="); known && d.plain && !strings.Contains(d.hosts[0], "*") {
		c.BaseURL = variable + "=http://" + d.hosts[0] + path
	}
	for _, host := range d.hosts {
		if egress.IsAddress(host) || strings.ContainsAny(host, "/: =") {
			return c, fmt.Errorf("host: %q is not the name of a host", clip(host))
		}
		for _, path := range paths {
			text := strings.TrimSpace(d.methods + " " + host + ":443" + path)
			r, err := egress.ParseRule(text)
			if err != nil {
				return c, err
			}
			c.Rules = append(c.Rules, r.String())
		}
	}
	return c, nil
}

// Values reads the values of credentials on the host. A credential whose value cannot be read
// has no secret, and a problem. No problem contains a value. Programs run side by side, since each may take long, but one program only once
// at a time, because it may ask the user to unlock it.
func Values(ctx context.Context, all []control.Credential) (secrets []secret.Secret, problems []error) {
	values, errs, byProgram := make([]secret.Secret, len(all)), make([]error, len(all)), map[string][]int{}
	for i, c := range all {
		byProgram[programOf(c)] = append(byProgram[programOf(c)], i)
	}
	var running sync.WaitGroup
	for _, places := range byProgram {
		running.Go(func() {
			for _, i := range places {
				values[i], errs[i] = valueOf(ctx, all[i])
			}
		})
	}
	running.Wait()
	for i, c := range all {
		if errs[i] != nil {
			problems = append(problems, fmt.Errorf("the credential %s has no value: %s: %w", c.Name, gitops.Text(clip(c.Source)), errs[i]))
			continue
		}
		secrets = append(secrets, values[i])
	}
	return secrets, problems
}

// programOf returns the kind of a credential's source, with the program of a command.
func programOf(c control.Credential) string {
	kind, rest, _ := strings.Cut(c.Source, ":")
	if words := strings.Fields(rest); kind == "command" && len(words) > 0 {
		return kind + ":" + words[0]
	}
	return kind
}

// Sources returns the credentials of a running prison's network without their values, and the password of its proxy. The process that
// holds the network reads the values itself. Credentials with the value of a user's variable are left out, as only the user has it.
func Sources(ctx context.Context, repo *gitops.Repository, config gitops.Config, kept map[string]string, dir string) (all []secret.Secret) {
	rules, err := control.ReadRules(dir)
	if err != nil {
		return nil
	}
	for _, c := range rules.Credentials {
		if s, _, err := sourceOf(c); err == nil && c.Placeholder != "" && !s.Source.Fixed() {
			all = append(all, s)
		}
	}
	password, _ := ProxyPassword(ctx, repo, config, kept) // without it the proxy refuses
	return append(all, password...)
}

// Lost returns the credentials whose values the running network of a prison has lost.
func Lost(dir string) []control.Credential {
	rules, err := control.ReadRules(dir)
	state, none := control.ReadState(dir)
	if err != nil || none != nil {
		return nil
	}
	return slices.DeleteFunc(rules.Credentials, func(c control.Credential) bool {
		return !slices.ContainsFunc(state.Credentials, func(u control.CredentialUse) bool { return u.Name == c.Name && IsLost(c, u) })
	})
}

// IsLost reports whether a running network has lost the value of a credential, which programs inside have a placeholder for.
func IsLost(c control.Credential, u control.CredentialUse) bool {
	return c.Placeholder != "" && !u.Known && !u.Ended
}

// Renewal returns the command that gives a running network the value of a credential again.
func Renewal(c control.Credential) string {
	if name, typed := strings.CutPrefix(c.Source, "env:"); typed {
		return gitops.Text(name).String() + "=VALUE git airlock start"
	}
	return "git airlock net credential " + c.Name + " && git airlock start"
}

// sourceOf returns a credential without its value. variable is the user's variable with the value; empty for none.
func sourceOf(c control.Credential) (s secret.Secret, variable string, err error) {
	host, _, _ := strings.Cut(HostsOf(c), ",")
	s.Name = c.Name
	if s.Source, variable, err = secret.Parse(c.Source, host); err != nil {
		return s, "", err
	}
	if argv := s.Source.Argv; len(argv) > 0 && hostenv.Inside(argv[0]) {
		return s, "", fmt.Errorf("%s is in a work tree of the repository, where an agent could replace it", gitops.Text(clip(argv[0])))
	}
	return s, variable, nil
}

func valueOf(ctx context.Context, c control.Credential) (s secret.Secret, err error) {
	s, variable, err := sourceOf(c)
	if err != nil {
		return s, err
	}
	if variable != "" {
		s.Value, _ = hostenv.Original(variable) // not from a .env file: a commit of the agent could bring in the key of somebody else's account
	} else if s.Value, err = s.Source.Read(ctx); err != nil && len(s.Source.Argv) > 0 {
		return s, &programError{err, s.Source}
	} else if err != nil {
		return s, err
	}
	if err = credential.CheckValue(s.Value); err == nil && credential.IsShort(s.Value) {
		err = errors.New("the value is too short to be a secret")
	}
	return s, err
}

// programError reports that a program has printed no value. The program had no terminal, and its own words are not shown, because they may
// contain a value.
type programError struct {
	error
	source secret.Source
}

func (e *programError) Unwrap() error { return e.error }

// Next returns the command that runs the program at a terminal, where it can ask, and shows no value.
func (e *programError) Next() []string {
	var command []string
	if e.source.Input != "" {
		command = []string{"printf", "%b", words.ShellQuote(strings.ReplaceAll(e.source.Input, "\n", `\n`)), "|"}
	}
	for _, word := range e.source.Argv {
		command = append(command, gitops.Pasteable(word))
	}
	return []string{strings.Join(command, " ") + " >/dev/null  # at a terminal it can ask, and says what fails"}
}

// HostsOf returns the hosts of a credential, separated by commas.
func HostsOf(c control.Credential) string {
	var hosts []string
	for _, text := range c.Rules {
		_, target, some := strings.Cut(text, " ")
		if !some {
			target = text
		}
		if host, _, _ := strings.Cut(target, ":"); !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return strings.Join(hosts, ", ")
}

// place gives placeholders to the credentials that have a value. A credential keeps its placeholder of an earlier start of the same
// prison, because programs inside may have stored it.
func place(all, before []control.Credential, secrets []secret.Secret) []control.Credential {
	all = slices.Clone(all)
	for i, c := range all {
		if !slices.ContainsFunc(secrets, func(s secret.Secret) bool { return s.Name == c.Name }) {
			continue
		}
		prefix := ""
		if s, known := serviceOf(func(s service) bool { return s.name == c.Name }); known {
			prefix = s.prefix
		}
		all[i].Placeholder = prefix + rand.Text() + rand.Text()[:10]
		if j := slices.IndexFunc(before, func(b control.Credential) bool { return b.Name == c.Name && b.Placeholder != "" }); j >= 0 {
			all[i].Placeholder = before[j].Placeholder
		}
	}
	return all
}

// Placeholders returns the variables that programs inside get in place of values, and those with the addresses of services, as
// NAME=VALUE.
func Placeholders(all []control.Credential) (env []string) {
	for _, c := range all {
		for _, name := range c.Variables {
			if c.Placeholder != "" {
				env = append(env, name+"="+c.Placeholder)
			}
		}
		for _, further := range []string{c.BaseURL, c.With} {
			if further != "" && c.Placeholder != "" {
				env = append(env, further)
			}
		}
	}
	return env
}
