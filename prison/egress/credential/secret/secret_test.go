package secret

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const value = "sk-real-0123456789"

func TestRead(t *testing.T) {
	home := t.TempDir()
	for name, content := range map[string]string{
		"plain": value + "\n", "login.json": `{"a":{"token":"` + value + `"},"n":1}`,
		"bin/pass": "#!/bin/sh\necho " + value + "\necho second\n", "bin/secret-tool": "#!/bin/sh\nprintf %s \"$3-$5-" + value + "\"\n",
		"bin/git":  "#!/bin/sh\nread a; read b; echo $a; echo username=u; echo password=" + value + "; test \"$b $GIT_TERMINAL_PROMPT\" = 'host=api.test 0'\n",
		"bin/fail": "#!/bin/sh\necho " + value + "; echo " + value + " >&2; exit 3\n", "bin/much": "#!/bin/sh\nhead -c 70000 /dev/zero; echo " + value + "\n",
		"bin/leave": "#!/bin/sh\nsleep 30 &\necho " + value + "\n",
		"bin/tty":   "#!/bin/sh\n: </dev/tty && echo asks\n",
	} {
		name = filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", home)
	t.Setenv("PATH", filepath.Join(home, "bin")+":/usr/bin:/bin")
	for text, want := range map[string]string{
		"file:~/plain": value, "file:" + home + "/login.json#a.token": value, "pass:a/b": value, "git": value, "command:printf %s " + value: value,
		"command:printf x\\n\\n": "x", "keychain:svc/me": "svc-me-" + value, "command:leave": value,

		"file:~/none": "", "file:~/login.json#a": "", "file:~/login.json#n": "", "file:~/login.json#x.y.z": "", "file:~/plain#a": "", "command:fail": "",
		"command:much": "", "command:tty": "", "command:no-such-program": "", "vault:a": "", "op:x": "", "keychain:x": "", "x": "", "": "", "bw:": "", "env:": "",
		"bw:--raw": "", "pass:-c": "",
	} {
		s, variable, err := Parse(text, "api.test")
		got := ""
		if err == nil {
			got, err = s.Read(context.Background())
		}
		if got != want || (err == nil) != (want != "") || variable != "" || err != nil && strings.Contains(err.Error(), value) {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	t.Setenv("PATH", filepath.Join(home, "bin"))
	if kinds := strings.Join(Kinds(), " "); kinds != "env file login command git keychain pass" {
		t.Error(kinds)
	}
	if s, variable, err := Parse("env:API_KEY", ""); variable != "API_KEY" || err != nil || !s.Fixed() {
		t.Error(s, variable, err)
	}
}

func TestLogin(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("CODEX_HOME", "")
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	t.Setenv("PATH", filepath.Join(home, "bin")+":/usr/bin:/bin")
	put := func(name, content string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o755), os.WriteFile(filepath.Join(home, name), []byte(content), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	read := func(program string) (string, error) {
		s, _, err := Parse("login:"+program, "api.test")
		if err != nil {
			return "", err
		}
		return s.Read(context.Background())
	}
	if _, err := read("other"); err == nil || !strings.Contains(err.Error(), "file:, keychain: and command: can name it") {
		t.Error(err)
	}
	if _, err := read("claude"); HasLogin("claude") || err == nil || !strings.Contains(err.Error(), "claude has no login on this machine: run claude here") {
		t.Error(err)
	}
	claude := func(ends time.Time) string {
		return fmt.Sprintf(`{"claudeAiOauth":{"accessToken":"%s","refreshToken":"never","expiresAt":%d}}`, value, ends.UnixMilli())
	}
	put(".claude/.credentials.json", claude(time.Now().Add(time.Hour)))
	if got, err := read("claude"); got != value || err != nil || !HasLogin("claude") {
		t.Error(got, err)
	}
	put(".claude/.credentials.json", claude(time.Now().Add(-time.Hour)))
	if got, err := read("claude"); got != "" || err == nil || !strings.Contains(err.Error(), "use claude once on this machine, outside of a prison") {
		t.Error(got, err)
	}
	t.Setenv("CLAUDE_CONFIG_DIR", home+"/moved")
	put("moved/.credentials.json", claude(time.Now().Add(time.Hour)))
	if got, err := read("claude"); got != value || err != nil {
		t.Error(got, err)
	}

	// A login with ChatGPT is refused, and one with a key is used.
	put(".codex/auth.json", `{"OPENAI_API_KEY":null,"tokens":{"access_token":"never","refresh_token":"never"}}`)
	if got, err := read("codex"); got != "" || err == nil || !strings.Contains(err.Error(), "a login with ChatGPT works on this machine alone") {
		t.Error(got, err)
	}
	put(".codex/auth.json", `{"OPENAI_API_KEY":"`+value+`"}`)
	if got, err := read("codex"); got != value || err != nil {
		t.Error(got, err)
	}
}
