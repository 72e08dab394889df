package secrets

import (
	"encoding/base64"
	"strconv"
	"strings"
	"testing"
)

// samples are put together here, so that this file itself has no finding.
var samples = map[string]string{
	"github-pat":              "token: gh" + "p_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx",
	"private-key":             "-----BEGIN RSA " + "PRIVATE KEY-----\n" + strings.Repeat("MIIEpAIBAAKCAQEA0zx\n", 8) + "-----END RSA " + "PRIVATE KEY-----\n",
	"aws-access-token":        "id = AKIA" + "QYLPMN5HHHFPZAM2",
	"slack-bot-token":         `"xo` + `xb-781236542736-2364535789652-GkwFDQoHqzXDVsC6GzqYUypD"`,
	"gitlab-pat":              "gl" + "pat-5TFmJ2hUz0wNXNeiqfXA",
	"age-secret-key":          "AGE-SECRET-" + "KEY-1QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE",
	"stripe-access-token":     "sk_" + "live_4eC39HqLyjWDarjtT1zdp7dc",
	"anthropic-api-key":       "sk-" + "ant-api03-" + strings.Repeat("aB3-x_9Kq", 10) + "wXyAA",
	"1password-secret-key":    "A3" + "-ASWWYB-798JRYLJVD4-23DC2-86TVM-H43EB",
	"npm-access-token":        "np" + "m_" + "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cE1gH3jK5",
	"generic-api-key":         `api_key = "` + "8b1f3c5d7e9a2b4c6d8e0f1a3b5c7d9e" + `"`,
	"hashicorp-tf-password":   "password = \"" + "s3cr3t-P4ssw0rd" + "\"",
	"digitalocean-pat":        "do" + "p_v1_" + "8b1f3c5d7e9a2b4c6d8e0f1a3b5c7d9e8b1f3c5d7e9a2b4c6d8e0f1a3b5c7d9e",
	"google nothing of these": "",
}

func rulesIn(path, text string) map[string]Match {
	found := map[string]Match{}
	for _, m := range Default().Find(path, []byte(text)) {
		found[m.Rule] = m
	}
	return found
}

func TestFind(t *testing.T) {
	for rule, text := range samples {
		path := "config.py"
		if strings.HasPrefix(rule, "hashicorp") {
			path = "main.tf"
		}
		found := rulesIn(path, "first line\nsecond line\n"+text+"\n")
		if m, ok := found[rule]; text != "" && (!ok || m.Line != 3) {
			t.Errorf("%s: found %+v, want it on line 3", rule, found)
		}
		if text == "" && len(found) != 0 {
			t.Errorf("%q: found %+v", text, found)
		}
	}
}

// TestEntropyIsDeterministic checks that a text always has the same entropy, to the last digit.
func TestEntropyIsDeterministic(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("é", 3) + strings.Repeat("ü", 5) + strings.Repeat("ß", 7) + strings.Repeat("€", 11) + "ñçåø")
	want := entropy(text)
	for range 200 {
		if got := entropy(text); got != want {
			t.Fatalf("%.20f and %.20f", got, want)
		}
	}
}

func TestFindNothing(t *testing.T) {
	for _, text := range []string{
		"",
		"package main\n\nfunc main() {}\n",
		"token: ghp_short",
		"see https://example.com/-----BEGIN",
		"-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----\n",
		"-----BEGIN RSA PRIVATE KEY-----\n...\n",
		"password = os.environ['PASSWORD']",
		"ghp_" + strings.Repeat("a", 36),                      // no entropy
		"aws_access_key_id = AKIAIOSFODNN7" + "EXAMPLE",       // the example of the manual
		"api_key = \"your-api-key-goes-here-please\"",         // stop words
		"sha1: 8b1f3c5d7e9a2b4c6d8e0f1a3b5c7d9e8b1f3c5d in x", // no keyword nearby
	} {
		if found := rulesIn("a.txt", text); len(found) != 0 {
			t.Errorf("%q: found %+v", text, found)
		}
	}
}

// TestCommentAllowsNoSecret checks that a comment by the author of the secret does not allow it.
func TestCommentAllowsNoSecret(t *testing.T) {
	if len(rulesIn("a.py", samples["github-pat"]+" # gitleaks:allow")) == 0 {
		t.Error("a comment hid a token")
	}
}

func TestGuess(t *testing.T) {
	for rule, want := range map[string]bool{"github-pat": false, "private-key": false, "generic-api-key": true, "hashicorp-tf-password": true} {
		if got := rulesIn("main.tf", samples[rule])[rule]; got.Guess != want {
			t.Errorf("%s: %+v, want guess %t", rule, got, want)
		}
	}
}

// TestRulesCompile checks that all expressions compile, and that none matches an empty text.
func TestRulesCompile(t *testing.T) {
	d := Default()
	if len(d.rules) < 200 {
		t.Errorf("only %d rules", len(d.rules))
	}
	for _, r := range d.rules {
		if r.regex != nil && r.regex().NumSubexp() < r.group {
			t.Errorf("%s wants group %d", r.id, r.group)
		}
		if r.path != nil {
			r.path()
		}
		for _, a := range append(r.allowed, d.allowed) {
			a.allows(candidate{path: "p", secret: []byte("s")})
			a.allowsPath("p")
		}
	}
}

func TestFindIsBounded(t *testing.T) {
	text := strings.Repeat(samples["github-pat"]+"\n", 10000)
	if n := len(Default().Find("a", []byte(text))); n > matchLimit {
		t.Errorf("%d matches", n)
	}
}

// TestFindAfterMany checks that matches which are allowed, or do not count, do not hide a later one, and that the end
// of a search is reported.
func TestFindAfterMany(t *testing.T) {
	excused := "id = AKIAIOSFODNN7" + "EXAMPLE\n"
	key := samples["aws-access-token"] + "\n"
	encoded := base64.StdEncoding.EncodeToString([]byte(samples["github-pat"])) + "\n"
	rest := func(from int) func(Match) bool { return func(m Match) bool { return m.Last >= from } }
	for _, c := range []struct {
		name, text string
		counts     func(Match) bool
		line       int // of the only match; 0: none
	}{
		{"excused", strings.Repeat(excused, 1000) + key, nil, 1001},
		{"not counted", strings.Repeat(key, 1000) + key, rest(1001), 1001},
		{"not counted, encoded", strings.Repeat(encoded, 1000) + encoded, rest(1001), 1001},
		{"the search ends", strings.Repeat(excused, excuseLimit+10) + key, nil, excuseLimit + 1},
		{"the search ends, but not before what counts", strings.Repeat(excused, excuseLimit+10) + key, rest(excuseLimit + 5), excuseLimit + 11},
		{"nothing counts", strings.Repeat(key, 1000), rest(1001), 0},
		{"all are excused", strings.Repeat(excused, excuseLimit), nil, 0},
	} {
		found := Default().FindNear("a.txt", []byte(c.text), nil, c.counts)
		if len(found) > 1 || len(found) == 1 && found[0].Line != c.line || len(found) == 0 && c.line != 0 {
			t.Errorf("%s: %d found, %+v, want line %d", c.name, len(found), found[:min(3, len(found))], c.line)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"[[rules]]\nid = 1", "[[rules]]\nid = 'x'", "rules"} {
		if _, err := parse([]byte(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func FuzzFind(f *testing.F) {
	for _, text := range samples {
		f.Add("a.yaml", []byte(text))
	}
	f.Fuzz(func(t *testing.T, path string, text []byte) {
		for _, m := range Default().Find(path, text) {
			if m.Line < 1 || m.Line > 1+strings.Count(string(text), "\n") {
				t.Errorf("%+v in a text of %d lines", m, 1+strings.Count(string(text), "\n"))
			}
		}
	})
}

func BenchmarkFind(b *testing.B) {
	text := []byte(strings.Repeat("func (t *T) key(access string) error { return t.token(access) }\n", 1000))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Default().Find("a.go", text)
	}
}

// BenchmarkExcused searches a text of one line with many allowed matches. The time for each must not grow.
func BenchmarkExcused(b *testing.B) {
	for name, part := range map[string]string{"lines": "id = AKIAIOSFODNN7" + "EXAMPLE\n", "line": "id = AKIAIOSFODNN7" + "EXAMPLE "} {
		for _, n := range []int{1 << 12, 1 << 14} {
			text := []byte(strings.Repeat(part, n))
			b.Run(name+strconv.Itoa(n), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					Default().Find("a.txt", text)
				}
			})
		}
	}
}
