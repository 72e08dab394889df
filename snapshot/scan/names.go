package scan

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// known is a kind of file that is known to contain secrets.
type known struct {
	rule  string   // name of the rule
	what  string   // what such a file contains, for messages
	files []string // file names; with a slash, the end of a path; with a star, the end or the beginning of a name
	// value matches a secret in its last group. If it is nil, the file itself counts as the secret.
	value  *regexp.Regexp
	sure   Severity // severity if value matches or is nil
	maybe  Severity // severity without a match, if always is set
	always bool     // report the file also without a match
}

// knownFiles are tried in order, and the first kind that fits a file counts. The expressions are compiled at the first search, so that
// commands without a search do not wait for that.
var knownFiles = sync.OnceValue(func() []known {
	// envValue matches the value of a variable whose name suggests a secret.
	envValue := regexp.MustCompile(`(?im)^[ \t]*(?:export[ \t]+)?[A-Z0-9_.]*(?:SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIALS?)[A-Z0-9_]*[ \t]*[=:][ \t]*["']?([^\s"'#]{6,})`)
	return []known{
		{rule: "ssh-key-file", what: "a private key of SSH by its name", files: []string{"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk", "*.ppk"}, sure: High},
		{rule: "key-store", what: "a store of private keys", files: []string{"*.p12", "*.pfx", "*.jks", "*.keystore", "*.bks", "*.kdbx", "*.pkcs12"}, sure: High},
		{rule: "gcloud-credentials", what: "credentials of Google's cloud", files: []string{"application_default_credentials.json", "access_tokens.db", "gcloud/credentials.db"},
			value: regexp.MustCompile(`"(?:refresh_token|private_key|client_secret)"\s*:\s*"([^"]{8,})"`), sure: High, maybe: Medium, always: true},
		{rule: "aws-credentials", what: "credentials of Amazon's cloud", files: []string{".aws/credentials"},
			value: regexp.MustCompile(`(?im)^\s*aws_(?:secret_access_key|session_token)\s*=\s*(\S{16,})`), sure: High, maybe: Medium, always: true},
		{rule: "azure-credentials", what: "credentials of Microsoft's cloud", files: []string{".azure/accessTokens.json", ".azure/msal_token_cache.json"}, sure: High},
		{rule: "terraform-state", what: "a state of Terraform, which holds what it made in plain text", files: []string{"*.tfstate", "*.tfstate.backup"},
			value: regexp.MustCompile(`"resources"\s*:\s*\[\s*\{\s*"(\w+)`), sure: High, maybe: Low, always: true},
		{rule: "terraform-credentials", what: "a token of Terraform", files: []string{".terraformrc", "terraform.rc", "credentials.tfrc.json"},
			value: regexp.MustCompile(`(?i)"?token"?\s*[=:]\s*"([^"]{8,})"`), sure: High},
		{rule: "kubeconfig", what: "credentials of a cluster", files: []string{"kubeconfig", "*.kubeconfig", "kubeconfig.yaml", "kubeconfig.yml", ".kube/config"},
			value: regexp.MustCompile(`(?m)^[ \t-]*(?:client-key-data|token|password)\s*:\s*["']?([^\s"']{8,})`), sure: High, maybe: Low, always: true},
		{rule: "docker-credentials", what: "credentials of a registry", files: []string{".docker/config.json", ".dockercfg", ".dockerconfigjson"},
			value: regexp.MustCompile(`"(?:auth|identitytoken)"\s*:\s*"([A-Za-z0-9+/=._-]{8,})"`), sure: High},
		{rule: "npm-credentials", what: "a token of a package registry", files: []string{".npmrc", "npmrc"},
			value: regexp.MustCompile(`(?m)(?:^|:)_(?:authToken|auth|password)\s*=\s*["']?([^\s"']{6,})`), sure: High},
		{rule: "yarn-credentials", what: "a token of a package registry", files: []string{".yarnrc.yml"},
			value: regexp.MustCompile(`(?m)^\s*npmAuth(?:Token|Ident)\s*:\s*["']?([^\s"']{6,})`), sure: High},
		{rule: "pypi-credentials", what: "a password of a package registry", files: []string{".pypirc"},
			value: regexp.MustCompile(`(?im)^\s*password\s*[=:]\s*(\S{6,})`), sure: High, maybe: Low, always: true},
		{rule: "gem-credentials", what: "a key of a package registry", files: []string{".gem/credentials", ".bundle/config"},
			value: regexp.MustCompile(`(?im)^\s*(?::\w*api_key|BUNDLE_\w*__\w*)\s*:\s*["']?([^\s"']{8,})`), sure: High},
		{rule: "cargo-credentials", what: "a token of a package registry", files: []string{".cargo/credentials", ".cargo/credentials.toml"},
			value: regexp.MustCompile(`(?m)^\s*token\s*=\s*"([^"]{8,})"`), sure: High},
		{rule: "maven-credentials", what: "a password of a package registry", files: []string{".m2/settings.xml", "settings-security.xml"},
			value: regexp.MustCompile(`<(?:password|master|passphrase)>([^<\s]{6,})<`), sure: High},
		{rule: "netrc", what: "passwords of hosts", files: []string{".netrc", "_netrc"},
			value: regexp.MustCompile(`(?m)\bpassword\s+(\S{4,})`), sure: High, maybe: Low, always: true},
		{rule: "git-credentials", what: "passwords of git's hosts", files: []string{".git-credentials"},
			value: regexp.MustCompile(`(?m)^\w+://[^:/\s]+:([^@\s]{4,})@`), sure: High},
		{rule: "database-password", what: "a password of a database", files: []string{".pgpass", "pgpass.conf"},
			value: regexp.MustCompile(`(?m)^[^#\s][^:\n]*:[^:\n]*:[^:\n]*:[^:\n]*:(\S{4,})`), sure: High},
		{rule: "database-password", what: "a password of a database", files: []string{".my.cnf", ".mylogin.cnf"},
			value: regexp.MustCompile(`(?im)^\s*password\s*=\s*["']?([^\s"']{4,})`), sure: High},
		{rule: "database-password", what: "a password of a database", files: []string{"database.yml", "database.yaml", "wp-config.php"},
			value: regexp.MustCompile(`(?im)(?:^\s*password\s*:\s*["']?|DB_PASSWORD['"]\s*,\s*['"])([^\s"'<]{6,})`), sure: Medium},
		{rule: "rails-key", what: "the key to a Rails application's credentials", files: []string{"master.key", "config/credentials/production.key", "config/credentials/staging.key", "config/credentials/development.key", "config/credentials/test.key"},
			value: regexp.MustCompile(`^\s*([0-9a-f]{32})\s*$`), sure: High},
		{rule: "rails-secret", what: "the secret of a Rails application", files: []string{"config/secrets.yml", "secret_token.rb"},
			value: regexp.MustCompile(`(?m)secret_(?:key_base|token)\s*[:=]\s*["']?([0-9a-f]{30,})`), sure: Medium},
		{rule: "htpasswd", what: "hashes of passwords", files: []string{".htpasswd", "htpasswd"},
			value: regexp.MustCompile(`(?m)^[^:\s]+:(?:\$\w+\$)?([^\s:]{8,})`), sure: Medium},
		{rule: "env-file", what: "variables of an environment", files: []string{".env.development", ".env.dev", ".env.ci", ".env.defaults"}, value: envValue, sure: Medium, maybe: Low, always: true},
		{rule: "env-file", what: "variables of an environment", files: []string{".env", "*.env", ".env.*"}, value: envValue, sure: High, maybe: Medium, always: true},
		{rule: "env-file", what: "variables of an environment", files: []string{".envrc"}, value: envValue, sure: High},
	}
})

// fits reports whether a file with the path p and the name is of this kind.
func (k known) fits(p, name string) bool {
	for _, f := range k.files {
		end, starred := strings.CutPrefix(f, "*")
		begin, open := strings.CutSuffix(f, "*")
		switch {
		case starred && strings.HasSuffix(name, end) && name != end,
			!starred && open && strings.HasPrefix(name, begin) && name != begin,
			strings.Contains(f, "/") && (p == f || strings.HasSuffix(p, "/"+f)),
			f == name:
			return true
		}
	}
	return false
}

// rateName rates a file by its name, and by a secret value in its text. If more is true, the text has other findings, and a file that
// only may contain a secret is not reported.
func rateName(p string, as role, text []byte, more bool) (Finding, bool) {
	name := path.Base(p)
	lower := strings.ToLower(p)
	for _, k := range knownFiles() {
		if !k.fits(lower, strings.ToLower(name)) {
			continue
		}
		f := Finding{Path: p, Rule: k.rule, Severity: k.sure, Reason: k.what + as.where()}
		if k.value != nil {
			line, found := k.find(text)
			if f.Line = line; !found {
				f.Severity = k.maybe
				f.Reason = k.what + ", with no secret to be seen" + as.where()
			}
			if !found && (!k.always || more || as == template) {
				return Finding{}, false
			}
		}
		switch as {
		case template:
			f.Severity = Low
		case trial, foreign:
			f.Severity = f.Severity.lowered()
		}
		return f, true
	}
	return Finding{}, false
}

// find looks for a value that is not a placeholder, and returns its line.
func (k known) find(text []byte) (line int, found bool) {
	for _, at := range k.value.FindAllSubmatchIndex(text, 1000) {
		from, to := at[len(at)-2], at[len(at)-1]
		if from < 0 || placeholder(string(text[from:to])) {
			continue
		}
		return 1 + bytes.Count(text[:from], []byte("\n")), true
	}
	return 0, false
}

// placeholderWords are parts of values that a user must replace.
var placeholderWords = []string{"example", "changeme", "change_me", "change-me", "change-this", "changethis", "placeholder", "dummy", "replace", "insert",
	"todo", "fixme", "your", "xxx", "...", "***", "not-a-real", "notreal", "redacted", "fill", "sample"}

// stockValues are common values that nobody keeps secret.
var stockValues = set("password passwd secret token root admin postgres mysql guest user test testing develop development none null true false empty default " +
	"secretkey supersecret localhost rootpassword userpassword mypassword postgrespassword test1234 password1 password123")

// placeholder reports whether a value reveals no secret: it refers to another place, or must be replaced.
func placeholder(value string) bool {
	lower := strings.ToLower(strings.Trim(value, `"'`))
	if stockValues()[lower] || strings.Trim(lower, lower[:min(1, len(lower))]) == "" {
		return true
	}
	begins := []string{"$", "<", "{{", "%", "@", "!", "env(", "vault:", "op://", "ssm:", "secretsmanager:", "file:", "/run/secrets/", "process.env", "os.environ", "*"}
	return slices.ContainsFunc(begins, func(begin string) bool { return strings.HasPrefix(lower, begin) }) ||
		slices.ContainsFunc(placeholderWords, func(word string) bool { return strings.Contains(lower, word) })
}
