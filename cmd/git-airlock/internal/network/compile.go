package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/credential/secret"
	"github.com/git-airlock/git-airlock/prison/egress/sets"
	"github.com/git-airlock/git-airlock/prison/egress/upstream"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/policy"
	"github.com/git-airlock/git-airlock/promote/teams"
	"github.com/git-airlock/git-airlock/words"
)

// Compile reads the settings of the network and returns the rules of a prison that is about to start, with the sources that
// people know. Its generation is 0. kept are the settings that the airlock keeps.
func Compile(ctx context.Context, repo *gitops.Repository, config gitops.Config, kept map[string]string, o airlock.Rules) (control.Rules, error) {
	rules := control.Rules{V: control.Version}
	config = config.With(kept)
	settings, err := networkSettings(ctx, repo, config, kept)
	if err != nil {
		return rules, err
	}
	if rules.Proxy, _, err = readUpstream(repo, settings); err != nil {
		return rules, err
	}
	if rules.Learn, err = config.Bool(learnKey, false); err != nil {
		return rules, err
	}
	if rules.Allow, err = ofSettings(repo, settings, AllowKey); err != nil {
		return rules, err
	}
	if rules.Deny, err = ofSettings(repo, settings, DenyKey); err != nil {
		return rules, err
	}
	made, err := teams.ReadPolicy(ctx, repo, config)
	if err != nil {
		return rules, err
	}
	if rules.Credentials, err = credentials(repo, settings, o.Keys, o.Login); err != nil {
		return rules, err
	}
	for _, c := range rules.Credentials {
		if rules.Allow, err = add(rules.Allow, c.Rules, "the credential "+c.Name); err != nil {
			return rules, err
		}
	}
	for _, more := range []struct {
		list   *[]control.Rule
		texts  []string
		source string
	}{
		{&rules.Deny, made.Denials(), fromPolicy},
		{&rules.Allow, o.Needs, "the agent " + o.Agent},
		{&rules.Allow, o.Allow, "--allow"},
		{&rules.Deny, o.Deny, denyOption},
	} {
		if *more.list, err = add(*more.list, more.texts, more.source); err != nil {
			return rules, err
		}
	}
	return rules, nil
}

// networkSettings reads the settings of the network with their files, and those that an airlock keeps. If there are none, it saves the time of
// running git again.
func networkSettings(ctx context.Context, repo *gitops.Repository, config gitops.Config, kept map[string]string) ([]gitops.Setting, error) {
	some := config.Has(AllowKey) || config.Has(DenyKey) || config.Has(UpstreamKey)
	for key := range config.All() {
		some = some || strings.HasPrefix(key, credentialKey)
	}
	if !some {
		return nil, nil
	}
	settings, err := repo.Settings(ctx)
	return airlock.WithKept(settings, kept), err
}

// readUpstream reads the proxy that all connections of a network go through. It returns the URL without the password.
func readUpstream(repo *gitops.Repository, settings []gitops.Setting) (proxy, password string, err error) {
	for _, s := range airlock.InForce(settings, UpstreamKey) {
		if inTree(repo, s.File) {
			return "", "", &RuleError{Source: UpstreamKey + " in " + s.File, Err: errInTree,
				Next: []string{"git config --show-origin --get-all " + UpstreamKey}}
		}
		p, secret, err := upstream.Parse(s.Value)
		if err != nil {
			return "", "", wrongProxy(s.Value, err)
		}
		if secret != "" || p.String() != proxy { // an airlock keeps the proxy of an earlier value without its password
			password = secret
		}
		proxy = p.String()
	}
	return proxy, password, nil
}

// ProxyPassword returns the password of the proxy in the settings, as a value for the network. If the proxy has no password, it returns no
// value.
func ProxyPassword(ctx context.Context, repo *gitops.Repository, config gitops.Config, kept map[string]string) ([]secret.Secret, error) {
	if !config.With(kept).Has(UpstreamKey) {
		return nil, nil
	}
	settings, err := networkSettings(ctx, repo, config.With(kept), kept)
	if err != nil {
		return nil, err
	}
	proxy, password, err := readUpstream(repo, settings)
	if err == nil && password == "" && proxy != "" && kept[typedKey] != "" {
		err = &LostPassword{Proxy: proxy}
	}
	if password == "" || err != nil {
		return nil, err
	}
	return []secret.Secret{{Name: control.ProxyPassword, Value: password}}, nil
}

func clip(text string) string { return words.Clip(text, 100) }

// Sources of denials that no file of settings has.
const (
	fromCommand = "git -c or the environment"
	fromPolicy  = "a policy (" + policy.TeamRef + " or " + teams.PolicyFileKey + ")"
	denyOption  = "--deny"
)

// ofSettings returns the rules of a setting that can have several values. As in git, an empty value removes those before it.
func ofSettings(repo *gitops.Repository, settings []gitops.Setting, key string) (rules []control.Rule, err error) {
	for _, s := range airlock.InForce(settings, key) {
		source := cmp.Or(s.File, fromCommand)
		if inTree(repo, s.File) {
			return nil, &RuleError{Source: key + " in " + s.File, Err: errInTree,
				Next: []string{"git config --global --add " + key + " " + gitops.Pasteable(s.Value), "git config --show-origin --get-all " + key}}
		}
		rules, err = add(rules, []string{s.Value}, source)
		if wrong, ok := errors.AsType[*RuleError](err); ok {
			wrong.Source, wrong.Next = key+" in "+source, []string{"git config --show-origin --get-all " + key}
		}
		if err != nil {
			return nil, err
		}
	}
	return rules, nil
}

// errInTree is the reason why a setting of the network is not obeyed if its file is in the work tree.
var errInTree = errors.New("is in the work tree, where a commit could change it")

// inTree reports whether a file of settings is in the work tree, but not in the git directory.
func inTree(repo *gitops.Repository, file string) bool {
	if file == "" {
		return false
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(repo.Top, file)
	}
	if resolved, err := filepath.EvalSymlinks(file); err == nil {
		file = resolved
	}
	return gitops.Within(file, repo.Top) && !gitops.Within(file, repo.CommonDir) && !gitops.Within(file, repo.GitDir)
}

// add adds the rules of a source to a list. For a set it adds the rules of the set. It adds no rule that the list has already.
func add(rules []control.Rule, texts []string, source string) ([]control.Rule, error) {
	for _, text := range texts {
		members, err := sets.Expand(text)
		if err != nil {
			return rules, &RuleError{Source: source, Err: err}
		}
		from := source
		if text = strings.TrimSpace(text); strings.HasPrefix(text, "@") {
			from = fmt.Sprintf("%s, %s", text, source)
		}
		for _, m := range members {
			if !slices.ContainsFunc(rules, func(r control.Rule) bool { return r.Text == m.String() && r.Until.IsZero() }) {
				rules = append(rules, control.Rule{Text: m.String(), Source: from})
			}
		}
	}
	return rules, nil
}
