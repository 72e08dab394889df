package scan

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/promote/policy/secrets"
)

func detect(path string, text []byte) []Match {
	var found []Match
	for _, m := range secrets.Default().Find(path, text) {
		found = append(found, Match(m))
	}
	return found
}

// key makes a text in the form of a private key. It is put together here, so that a scan of this file finds nothing.
func key(kind string) string {
	const line = "MIIEpAIBAAKCAQEA0zxYQ8Jr5vN2kW7bT4mD9cF1hL6pS3gXuE8aR\n"
	return "-----BEGIN " + kind + "PRIVATE " + "KEY-----\n" + strings.Repeat(line, 4) + "-----END " + kind + "PRIVATE " + "KEY-----\n"
}

const (
	none   Severity = -1
	github          = "gh" + "p_wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"
	azure           = "q7Vx2Kp9" + "Lm4Rt8Wz3Nb6Yc1Hd5Gf0JsAq8Ue+Xo2Ti/Pv6Zk1Bw9Fy4Mh7Ca3Ds5Gr0EjQnLuSxIoAlKbVd" + "WtY"
	chance          = "q7Vx2Kp9" + "Lm4Rt8Wz3Nb6Yc1Hd5Gf0JsA"
)

// planted are files with the expected findings. A file marked as missed contains a secret that a scan does not find, so that the count is
// honest.
var planted = []struct {
	path, text string
	want       Severity
	missed     bool
}{
	// Private keys, by content.
	{path: "deploy/key.pem", text: key("RSA "), want: High},
	{path: "deploy/id_ed25519", text: key("OPENSSH "), want: High},
	{path: "deploy/ec.key", text: key("EC "), want: High},
	{path: "deploy/pkcs8.key", text: key(""), want: High},
	{path: "deploy/pgp.asc", text: strings.ReplaceAll(key("PGP "), "KEY-----", "KEY BLOCK-----"), want: High},
	{path: "main.go", text: "const k = `" + key("RSA ") + "`\n", want: High},
	{path: "crlf.pem", text: strings.ReplaceAll(key("RSA "), "\n", "\r\n"), want: High},
	{path: "cert.pem", text: "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", want: none},
	{path: "id_rsa.pub", text: "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC7 a@b\n", want: none},
	// By name.
	{path: "home/id_rsa", text: "\x00\x01", want: High},
	{path: "store.p12", text: "\x30\x82\x00", want: High},
	{path: "app.jks", text: "\xfe\xed\xfe\xed\x00", want: High},
	{path: "putty.ppk", text: "PuTTY-User-Key-File-3: ssh-ed25519\n", want: High},
	{path: "passwords.kdbx", text: "\x03\xd9\xa2\x9a\x00", want: High},
	{path: "test/fixtures/store.p12", text: "\x30\x82\x00", want: Medium},
	// Cloud credentials.
	{path: "app.py", text: `aws_key = "AKIA` + `QYLPMN5HHHFPZAM2"`, want: High},
	{path: ".aws/credentials", text: "[default]\naws_access_key_id = AKIA" + "QYLPMN5HHHFPZAM2\naws_secret_access_key = wJalrXUtnFEMIbPxRfiCYq7Vx2Kp9Lm4Rt8Wz3N\n", want: High},
	{path: "gcp.json", text: `{"type": "service_account", "private_key": "` + strings.ReplaceAll(key(""), "\n", `\n`) + `"}`, want: High},
	{path: ".config/gcloud/application_default_credentials.json", text: `{"client_secret": "d-FL95Q19q7MQmFpd7hHD0Ty", "refresh_token": "1//0` + chance + `"}`, want: High},
	{path: "infra/terraform.tfstate", text: `{"version": 4, "resources": [{"mode": "managed"}]}`, want: High},
	{path: "infra/empty.tfstate", text: `{"version": 4, "resources": []}`, want: Low},
	{path: "azure.cs", text: `var c = "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=` + azure + `==";`, want: High},
	{path: "appsettings.json", text: `{"Storage": {"AccountKey": "` + azure + `=="}}`, want: High},
	{path: "emulator.cs", text: `var c = "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";`, want: none},
	{path: "azure.tf", text: `primary = "` + azure[:76] + "+AS" + `tq7Vx2w=="`, want: High},
	{path: "hub.sh", text: "KEY=" + azure[:33] + "+AE" + "hBq7Vx2=\n", want: High},
	{path: "ast.go", text: "x := a+ast.Node + \"" + strings.Repeat("A", 76) + "+ASt" + "AAAAAA==\"\n", want: none},
	{path: "do.tf", text: `token = "do` + `p_v1_` + strings.Repeat("8b1f3c5d", 8) + `"`, want: High},
	// Tokens of hosts and package registries.
	{path: "ci.sh", text: "curl -H 'Authorization: token " + github + "'\n", want: High},
	{path: "a.yml", text: "token: gl" + "pat-5TFmJ2hUz0wNXNeiqfXA\n", want: High},
	{path: "slack.js", text: `const t = "xo` + `xb-781236542736-2364535789652-GkwFDQoHqzXDVsC6GzqYUypD"`, want: High},
	{path: "pay.rb", text: `Stripe.api_key = "sk_` + `live_4eC39HqLyjWDarjtT1zdp7dc"`, want: High},
	{path: ".npmrc", text: "//registry.example/:_authToken=np" + "m_aB3dE5gH7jK9mN1pQ3sT5vX7zA9cE1gH3jK5\n", want: High},
	{path: "web/.npmrc", text: "//npm.corp/:_authToken=" + chance + "\n", want: High},
	{path: "b/.npmrc", text: "//npm.corp/:_authToken=${NPM_TOKEN}\nsave-exact=true\n", want: none},
	{path: ".yarnrc.yml", text: "nodeLinker: node-modules\nnpmAuthToken: \"" + chance + "\"\n", want: High},
	{path: ".pypirc", text: "[pypi]\nusername = __token__\npassword = " + chance + "\n", want: High},
	{path: ".netrc", text: "machine host login me password hunter22x\n", want: High},
	{path: ".git-credentials", text: "https://me:" + chance + "@host\n", want: High},
	{path: ".docker/config.json", text: `{"auths": {"r": {"auth": "bWU6aHVudGVyMg=="}}}`, want: High},
	{path: ".cargo/credentials.toml", text: "[registry]\ntoken = \"" + chance + "\"\n", want: High},
	{path: ".m2/settings.xml", text: "<server><password>" + chance + "</password></server>", want: High},
	// Variables.
	{path: ".env", text: "DEBUG=1\nAPI_KEY=" + chance + "\n", want: High},
	{path: "svc/.env.production", text: "DATABASE_PASSWORD='" + chance + "'\n", want: High},
	{path: "prod.env", text: "export JWT_SECRET=" + chance + "\n", want: High},
	{path: "plain/.env", text: "PORT=3000\nTOKEN=\nSECRET_KEY=changeme\n", want: Medium},
	{path: "ref/.env", text: "API_KEY=${API_KEY}\nAPI_TOKEN=<your token>\n", want: Medium},
	{path: ".env.example", text: "API_KEY=" + chance + "\n", want: Low},
	{path: ".env.sample", text: "API_KEY=changeme\n", want: none},
	{path: ".env.local.template", text: "PORT=1\n", want: none},
	{path: ".env.test", text: "SECRET_KEY_BASE=" + chance + "\n", want: Medium},
	{path: "windows/.env", text: utf16le("API_KEY=" + chance + "\r\n"), want: High},
	{path: ".envrc", text: "use flake\n", want: none},
	{path: "e/.envrc", text: "export GITHUB_TOKEN=" + chance + "\n", want: High},
	// Clusters, Rails, databases.
	{path: "kubeconfig", text: "users:\n- user:\n    client-key-data: " + strings.Repeat("TFMwdExTMUNSVWRK", 4) + "\n", want: High},
	{path: ".kube/config", text: "users:\n- user:\n    token: " + chance + "\n", want: High},
	{path: "k8s/secret.yaml", text: "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\ndata:\n  password: cTdWeDJLcDlMbTRSdDhXejNOYjY=\n", want: Medium},
	{path: "config/master.key", text: "0123456789abcdef0123456789abcdef\n", want: High},
	{path: "config/credentials.yml.enc", text: "abc--def--ghi", want: none},
	{path: "config/database.yml", text: "production:\n  password: " + chance + "\n", want: Medium},
	{path: "x/database.yml", text: "production:\n  password: <%= ENV['DB'] %>\ntest:\n  password: postgres\n", want: none},
	{path: "config/secrets.yml", text: "production:\n  secret_key_base: " + strings.Repeat("8b1f3c5d", 8) + "\n", want: Medium},
	{path: ".pgpass", text: "db.host:5432:app:me:" + chance + "\n", want: High},
	{path: "site/wp-config.php", text: "<?php define('DB_PASSWORD', '" + chance + "');", want: Medium},
	{path: ".htpasswd", text: "me:$apr1$x$abcdefghijklmnop\n", want: Medium},
	// By the words around.
	{path: "conf.py", text: "api_key = \"" + chance + "\"\n", want: Medium},
	{path: "conf_test.py", text: "api_key = \"" + chance + "\"\n", want: Low},
	{path: "url.txt", text: "postgres://me:" + chance + "@db/app\n", want: Medium},
	{path: "conf/db.yml", text: "a: 1\nurl: redis://:" + chance + "@cache:6379/0\n", want: Medium},
	{path: "README.md", text: "postgres://user:password@localhost/db and https://user:${PASSWORD}@host and http://[::1]:8080/a@b\n", want: none},
	{path: "note.txt", text: "the wifi is " + chance + "\n", want: Medium, missed: true},
	// In Base64.
	{path: "b64.txt", text: base64.StdEncoding.EncodeToString([]byte(github)) + "\n", want: High},
	{path: "url.sh", text: "curl host/?t=" + base64.RawURLEncoding.EncodeToString([]byte("?>~"+github)) + "\n", want: High},
	{path: "wrapped.txt", text: wrap(strings.Repeat("some more words\n", 8) + "token: " + github + "\n"), want: High},
	{path: "k8s/app.yaml", text: "kind: Secret\ndata:\n  key: " + base64.StdEncoding.EncodeToString([]byte(key("RSA "))) + "\n", want: High},
	{path: "b64_test.go", text: `"` + base64.StdEncoding.EncodeToString([]byte(github)) + `"`, want: Medium},
	{path: "twice.txt", text: base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte(github)))), want: High, missed: true},
	{path: "words.txt", text: base64.StdEncoding.EncodeToString([]byte(`api_key = "`+chance+`"`)) + "\n", want: none},
	{path: "logo.svg", text: "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n\x00"+github)), want: none},
	{path: "archive.zip", text: "PK\x03\x04\x00" + github, want: High, missed: true},
	// Without a secret.
	{path: "a.go", text: "package a\n\nvar token = os.Getenv(\"TOKEN\")\n", want: none},
	{path: "go.sum", text: "example.com/m v1.0.0 h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n", want: none},
	{path: "pub.pem", text: "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----\n", want: none},
	{path: "doc.md", text: "export AWS_ACCESS_KEY_ID=AKIAIOSFODNN7" + "EXAMPLE\n", want: none},
	{path: "a.html", text: "<input type=\"password\" name=\"password\" autocomplete=\"current-password\">\n", want: none},
	{path: "img.png", text: "\x89PNG\r\n\x1a\n\x00" + strings.Repeat("k", 100), want: none},
	// The same, among tests, in third-party code and in templates.
	{path: "pkg/testdata/key.pem", text: key("RSA "), want: Medium},
	{path: "src/FooTests/key.pem", text: key("RSA "), want: Medium},
	{path: "t/lib/key.pem", text: key("RSA "), want: Medium},
	{path: "spec/support/token.rb", text: "T = '" + github + "'\n", want: Medium},
	{path: "vendor/x/key.pem", text: key("RSA "), want: Medium},
	{path: "latest/key.pem", text: key("RSA "), want: High},
	{path: "contest/key.pem", text: key("RSA "), want: High},
}

// wrap returns a text as the program base64 encodes it, indented as in YAML.
func wrap(text string) string {
	encoded := base64.StdEncoding.EncodeToString([]byte(text))
	var b strings.Builder
	for line := range slices.Chunk([]byte(encoded), 76) {
		b.WriteString("  " + string(line) + "\r\n")
	}
	return b.String()
}

// utf16le returns a text as editors on Windows write it.
func utf16le(text string) string {
	var b strings.Builder
	b.WriteString("\xff\xfe")
	for _, c := range []byte(text) {
		b.WriteByte(c)
		b.WriteByte(0)
	}
	return b.String()
}

// TestPlanted counts the planted secrets that a scan finds.
func TestPlanted(t *testing.T) {
	s := Scanner{Detect: detect}
	hits, misses := 0, 0
	for _, p := range planted {
		found := s.file(p.path, asText([]byte(p.text)))
		worst := none
		for _, f := range found {
			worst = max(worst, f.Severity)
		}
		want := p.want
		if p.missed {
			want = none
			misses++
		} else if want != none {
			hits++
		}
		if worst != want {
			t.Errorf("%s: severity %d, want %d: %+v", p.path, worst, want, found)
		}
		for _, f := range found {
			if strings.Contains(f.Reason, chance) || strings.Contains(f.Reason, github) {
				t.Errorf("%s: the finding contains the secret: %+v", p.path, f)
			}
		}
	}
	t.Logf("%d planted secrets found, %d known to be missed", hits, misses)
}

func TestLines(t *testing.T) {
	s := Scanner{Detect: detect}
	found := s.file("a/.env", []byte("A=1\n\nAPI_TOKEN="+chance+"\n"))
	if len(found) != 1 || found[0].Line != 3 {
		t.Errorf("%+v, want one finding on line 3", found)
	}
	text := "x\n\n" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\n", 9)+github)) + "\n\n" + base64.StdEncoding.EncodeToString([]byte(github))
	if found := s.file("a.txt", []byte(text)); len(found) != 2 || found[0].Line != 3 || found[1].Line != 5 || !strings.Contains(found[0].Reason, "Base64") {
		t.Errorf("%+v, want findings in Base64 on lines 3 and 5", found)
	}
	if found := s.file("a.yml", []byte("x\n\ntoken: "+github+"\n")); len(found) != 1 || found[0].Line != 3 || found[0].Rule != "github-pat" {
		t.Errorf("%+v, want github-pat on line 3 alone", found)
	}
}

func TestPlaces(t *testing.T) {
	for path, want := range map[string]role{
		"a.go": ordinary, "a_test.go": trial, "FooTest.java": trial, "foo.spec.ts": trial, "latest.go": ordinary, "attestation/a": ordinary,
		"contest.py": ordinary, "Tests/a": trial, "src/testdata/a": trial, "docs/a.md": trial, "README.md": ordinary, "t/a": trial, "a/t": ordinary,
		"vendor/x/a.go": foreign, "web/node_modules/a.js": foreign, "vendor": ordinary, ".env.example": template, "config.sample.yml": template,
		"default.key": ordinary, "settings.dist": template, "example.env": template, "fixtures/x.key": trial,
	} {
		if got := roleOf(path); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
}

// A finding beside an allowed one in its line is still reported.
func TestAllowedBesideAnother(t *testing.T) {
	var s Settings
	if !s.addAllowance("aws-access-token:/app.py # a key for tests") {
		t.Fatal("the allowance cannot be read")
	}
	found := (Scanner{Settings: s, Detect: detect}).file("app.py", []byte(`keys = ["AKIA`+`QYLPMN5HHHFPZAM2", "ghp_`+`a8Kq2ZxP4mW7sT1vB9nL3cD6fG5hJ0rE2yU4"]`+"\n"))
	if !slices.ContainsFunc(found, func(f Finding) bool { return f.Rule == "github-pat" && f.Allowed == "" }) {
		t.Errorf("%+v", found)
	}
}

func TestAllowances(t *testing.T) {
	f := Finding{Path: "a b/[x]*.pem ", Rule: "private-key"}
	var s Settings
	if !s.addAllowance(AllowanceFor(f) + "made for the tests") {
		t.Fatal("the line to paste cannot be read")
	}
	for _, other := range []struct {
		Finding
		want string
	}{
		{f, "made for the tests"},
		{Finding{Path: f.Path, Rule: "github-pat"}, ""},
		{Finding{Path: "a b/x1.pem ", Rule: f.Rule}, ""},
		{Finding{Path: "c/" + f.Path, Rule: f.Rule}, ""},
	} {
		if got := s.allowed(other.Finding); got != other.want {
			t.Errorf("%+v: allowed %q, want %q", other.Finding, got, other.want)
		}
	}
	for _, value := range []string{"", "*.pem", "*.pem # ", "*.pem #why", "!*.pem # why", " # why"} {
		if (&Settings{}).addAllowance(value) {
			t.Errorf("%q was read", value)
		}
	}
	for value, want := range map[string]bool{"testdata/ # fake": true, "*:a:b # one": true, "# # comment": false} {
		if got := (&Settings{}).addAllowance(value); got != want {
			t.Errorf("%q: read %t", value, got)
		}
	}
}

func TestOwnPatterns(t *testing.T) {
	var s Settings
	for value, want := range map[string]bool{"high acme-token ACME-[0-9]{4}": true, "high acme-token (": false, "worst a b": false, "high a": false, "high A b": false} {
		if got := s.addPattern(value); got != want {
			t.Errorf("%q: read %t", value, got)
		}
	}
	if !s.addFile("low acme-file *.acme") || s.addFile("low acme-file !x") {
		t.Error("names were read wrongly")
	}
	found := Scanner{Detect: detect, Settings: s}.file("a.acme", []byte("one\nACME-1234\n"))
	if len(found) != 2 || found[0].Rule != "acme-file" || found[0].Severity != Low || found[1].Rule != "acme-token" || found[1].Line != 2 || found[1].Severity != High {
		t.Errorf("%+v", found)
	}
}

func FuzzFile(f *testing.F) {
	for _, p := range planted {
		f.Add(p.path, []byte(p.text))
	}
	f.Fuzz(func(t *testing.T, path string, content []byte) {
		text := asText(content)
		for _, found := range (Scanner{Detect: detect}).file(path, text) {
			if found.Line < 0 || found.Line > 1+strings.Count(string(text), "\n") || found.Reason == "" {
				t.Errorf("%+v", found)
			}
			var s Settings
			value := AllowanceFor(found) + "why"
			if !strings.Contains(path, "\x00") && (!s.addAllowance(value) || s.allowed(found) == "") {
				t.Errorf("%q does not allow %+v", value, found)
			}
		}
	})
}
