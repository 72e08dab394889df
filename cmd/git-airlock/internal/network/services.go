package network

import (
	"slices"

	"github.com/git-airlock/git-airlock/prison/egress/credential/secret"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// service describes the credential of a known service.
type service struct {
	name, variable string
	hosts          []string
	header, format string
	prefix         string // of a placeholder, because some clients check it
	methods        string // that get the value; empty: all
	base           string // the variable with the address of the service, and what follows the host in it: "NAME=/path"
	with           string // a further variable, by which a program inside uses such a token, as NAME=VALUE
}

const authorization, bearer = "Authorization", "Bearer %s"

// services are the known credentials. A setting uses one by its name, and an agent by its variable.
var services = []service{
	{name: "anthropic", variable: "ANTHROPIC_API_KEY", hosts: []string{"api.anthropic.com"}, header: "X-Api-Key", format: "%s", prefix: "sk-ant-api03-", base: "ANTHROPIC_BASE_URL="},
	{name: "anthropic-token", variable: "ANTHROPIC_AUTH_TOKEN", hosts: []string{"api.anthropic.com"}, header: authorization, format: bearer, base: "ANTHROPIC_BASE_URL="},
	{name: "anthropic-oauth", variable: "CLAUDE_CODE_OAUTH_TOKEN", hosts: []string{"api.anthropic.com"}, header: authorization, format: bearer, prefix: "sk-ant-oat01-", base: "ANTHROPIC_BASE_URL="},
	{name: "openai", variable: "OPENAI_API_KEY", hosts: []string{"api.openai.com"}, header: authorization, format: bearer, prefix: "sk-", base: "OPENAI_BASE_URL=/v1"},
	{name: "codex", variable: "CODEX_API_KEY", hosts: []string{"api.openai.com"}, header: authorization, format: bearer, prefix: "sk-", base: "OPENAI_BASE_URL=/v1"},
	{name: "google", variable: "GEMINI_API_KEY", hosts: []string{"generativelanguage.googleapis.com"}, header: "X-Goog-Api-Key", format: "%s", prefix: "AIza", base: "GOOGLE_GEMINI_BASE_URL="},
	{name: "google-login", variable: "GOOGLE_CLOUD_ACCESS_TOKEN", hosts: []string{"cloudcode-pa.googleapis.com"}, header: authorization, format: bearer, prefix: "ya29.",
		with: "GOOGLE_GENAI_USE_GCA=true"},
	{name: "openrouter", variable: "OPENROUTER_API_KEY", hosts: []string{"openrouter.ai"}, header: authorization, format: bearer, prefix: "sk-or-v1-"},
	{name: "copilot", variable: "COPILOT_GITHUB_TOKEN", hosts: []string{"api.github.com", "**.githubcopilot.com"}, header: authorization, format: bearer, prefix: "gho_"},
	{name: "github", variable: "GITHUB_TOKEN", hosts: []string{"api.github.com"}, header: authorization, format: bearer, prefix: "ghp_", methods: "GET,HEAD"},
	{name: "npm", variable: "NPM_TOKEN", hosts: []string{"registry.npmjs.org"}, header: authorization, format: bearer, prefix: "npm_", methods: "GET,HEAD"},
	{name: "pypi", variable: "PYPI_TOKEN", hosts: []string{"pypi.org"}, header: authorization, format: "Basic __token__:%s", prefix: "pypi-", methods: "GET,HEAD"},
	{name: "cargo", variable: "CARGO_REGISTRY_TOKEN", hosts: []string{"crates.io", "index.crates.io"}, header: authorization, format: "%s", prefix: "cio", methods: "GET,HEAD"},
	{name: "amp", variable: "AMP_API_KEY", hosts: []string{"ampcode.com"}, header: authorization, format: bearer, prefix: "sgamp_"},
}

// serviceOf returns the service for which a condition holds.
func serviceOf(is func(service) bool) (service, bool) {
	if i := slices.IndexFunc(services, is); i >= 0 {
		return services[i], true
	}
	return service{}, false
}

// LoginOf returns the login that a program has on this machine, with the name of its credential. It is the zero value if there is none.
func LoginOf(name, program string, variables []string) (l airlock.Login) {
	if name != "" && secret.HasLogin(program) {
		l = airlock.Login{Credential: name, Source: "login:" + program, Variables: variables}
	}
	return l
}

// ofLogin returns the credential of a login, if no other one has a key for the agent.
func ofLogin(l airlock.Login, others []draft) (d draft, use bool) {
	s, known := serviceOf(func(s service) bool { return s.name == l.Credential })
	other := slices.ContainsFunc(others, func(d draft) bool {
		return slices.ContainsFunc(d.places(), func(name string) bool { return slices.Contains(l.Variables, name) })
	})
	return draft{service: s, source: l.Source}, known && !other
}
