package network

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/egress"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// settingsOf returns settings of credentials, as NAME.FIELD=VALUE.
func settingsOf(lines ...string) (all []gitops.Setting) {
	for _, line := range lines {
		key, value, _ := strings.Cut(line, "=")
		all = append(all, gitops.Setting{Key: credentialKey + key, Value: value})
	}
	return all
}

func TestCredentialSettings(t *testing.T) {
	all, err := credentials(nil, settingsOf("openai.source=env:MY_KEY", "own.source=file:/key", "own.host=a.test", "own.host=*.b.test", "own.env=A", "own.env=B",
		"own.methods=GET, POST", "own.paths=/v1/**", "own.header=X-Key", "own.limit=3"), []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "UNKNOWN"}, airlock.Login{})
	if err != nil {
		t.Fatal(err)
	}
	want := []control.Credential{
		{Name: "openai", Rules: []string{"api.openai.com:443"}, Header: "Authorization", Format: "Bearer %s", Variables: []string{"OPENAI_API_KEY"}, Source: "env:MY_KEY"},
		{Name: "own", Rules: []string{"GET,POST a.test:443/v1/**", "GET,POST *.b.test:443/v1/**"}, Header: "X-Key", Format: "%s", Variables: []string{"A", "B"}, Limit: 3, Source: "file:/key"},
		{Name: "anthropic", Rules: []string{"api.anthropic.com:443"}, Header: "X-Api-Key", Format: "%s", Variables: []string{"ANTHROPIC_API_KEY"}, Source: "env:ANTHROPIC_API_KEY"},
	}
	if !slices.EqualFunc(all, want, func(a, b control.Credential) bool {
		return a.Name == b.Name && slices.Equal(a.Rules, b.Rules) && slices.Equal(a.Variables, b.Variables) && a.Header == b.Header && a.Format == b.Format && a.Limit == b.Limit && a.Source == b.Source
	}) {
		t.Errorf("%+v", all)
	}
	if got := HostsOf(all[1]); got != "a.test, *.b.test" {
		t.Error(got)
	}
	if all, err := credentials(nil, settingsOf("codex.limit=5"), []string{"CODEX_API_KEY"}, airlock.Login{}); err != nil || len(all) != 1 || all[0].Source != "env:CODEX_API_KEY" || all[0].Limit != 5 {
		t.Errorf("a limit alone: %+v, %v", all, err)
	}
	for _, bad := range []string{"own.source=env:A", "own.host=a.test", "openai.colour=x", "openai.limit=0", "openai.mode=plain", "Own.source=x", "openai.format=x", "openai.host=*.com",
		"openai.host=a.test/x", "openai.header=a b", "openai.env=1", "openai.methods=get", "openai.paths=x",
		"openai.host=203.0.113.5", "openai.host=203.0.113.0/24", "openai.host=[2001:db8::1]", "openai.host=127.1"} {
		lines := []string{bad}
		if strings.HasPrefix(bad, "openai") {
			lines = append(lines, "openai.source=env:A")
		}
		if all, err := credentials(nil, settingsOf(lines...), nil, airlock.Login{}); err == nil {
			t.Errorf("%s: %+v", bad, all)
		}
	}
	for host, want := range map[string]string{"api.openai.com": "OPENAI_BASE_URL=http://api.openai.com/v1", "a.test": "OPENAI_BASE_URL=http://a.test/v1", "*.a.test": ""} {
		all, err := credentials(nil, settingsOf("openai.source=env:A", "openai.mode=base", "openai.host="+host), nil, airlock.Login{})
		if err != nil || !all[0].Base || all[0].BaseURL != want {
			t.Errorf("%s: %+v, %v", host, all, err)
		}
	}
	for _, s := range services {
		d := draft{service: s, source: "env:X"}
		if _, err := d.credential(); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
	}
}

// TestCopilotHosts checks that the credential of copilot is for each server that GitHub names for a plan.
func TestCopilotHosts(t *testing.T) {
	s, _ := serviceOf(func(s service) bool { return s.name == "copilot" })
	for _, host := range []string{"api.github.com", "api.githubcopilot.com", "api.individual.githubcopilot.com", "api.business.githubcopilot.com"} {
		if !slices.ContainsFunc(s.hosts, func(rule string) bool {
			r, err := egress.ParseRule(rule)
			return err == nil && r.Names(host, 443)
		}) {
			t.Errorf("the token is not for %s", host)
		}
	}
}

// TestPlaceholders checks that placeholders stay the same for a prison, and that only a credential with a value has one.
func TestPlaceholders(t *testing.T) {
	all, err := credentials(nil, settingsOf("openai.source=env:SET", "google.source=env:UNSET", "npm.source=env:SHORT", "github.source=nonsense"), nil, airlock.Login{})
	if err != nil {
		t.Fatal(err)
	}
	const value = "sk-real-0123456789"
	t.Setenv("SET", value)
	t.Setenv("SHORT", "short")
	secrets, problems := Values(t.Context(), all)
	if len(secrets) != 1 || secrets[0].Name != "openai" || secrets[0].Value != value || len(problems) != 3 {
		t.Fatalf("%d secrets, %v", len(secrets), problems)
	}
	dir := t.TempDir()
	var env []string
	for range 2 {
		rules, err := Begin(dir, control.Rules{Credentials: all}, secrets, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, Placeholders(rules.Credentials)...)
	}
	if len(env) != 2 || env[0] != env[1] || !strings.HasPrefix(env[0], "OPENAI_API_KEY=sk-") || strings.Contains(env[0], value) {
		t.Errorf("%q", env)
	}
}

// TestProgramError checks the next command after a program that failed: it runs the program at a terminal, and shows no value. Other
// failures have none.
func TestProgramError(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"pass", "git"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho secret-word-0123 >&2\nexit 2\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	for source, want := range map[string]string{
		"pass:my keys/openai": dir + "/pass show 'my keys/openai' >/dev/null", "git": `printf %b 'protocol=https\nhost=a.test\n\n' | ` + dir + "/git credential fill >/dev/null",
		"file:" + dir + "/missing": "", "command:missing": "",
	} {
		_, problems := Values(t.Context(), []control.Credential{{Name: "a", Rules: []string{"a.test:443"}, Source: source}})
		if len(problems) != 1 {
			t.Fatalf("%s: %v", source, problems)
		}
		wrong, is := errors.AsType[*programError](problems[0])
		if is != (want != "") || is && !strings.HasPrefix(wrong.Next()[0], want+"  # ") || strings.Contains(problems[0].Error(), "secret-word") {
			t.Errorf("%s: %v, %v", source, problems[0], wrong)
		}
	}
}

// TestValuesSideBySide reads values from two programs, of which each waits for the other, and one twice, which must not run twice at a time.
func TestValuesSideBySide(t *testing.T) {
	dir := t.TempDir()
	var all []control.Credential
	for i, name := range []string{"one", "two"} {
		other := []string{"two", "one"}[i]
		text := "#!/bin/sh\ncd " + dir + "\nmkdir lock." + name + " || exit 1\n: >" + name + ".ran\nuntil [ -e " + other + ".ran ]; do sleep 0.02; done\nrmdir lock." + name + "\necho value-of-" + name + "-$1\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, n := range []string{"1", "2"} {
			all = append(all, control.Credential{Name: name + n, Rules: []string{"a.test:443"}, Source: "command:" + filepath.Join(dir, name) + " " + n})
		}
	}
	secrets, problems := Values(t.Context(), all)
	if len(problems) > 0 || len(secrets) != 4 || secrets[0].Value != "value-of-one-1" || secrets[3].Value != "value-of-two-2" {
		t.Errorf("%d values, %v", len(secrets), problems)
	}
}
