package secret

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// login describes the file in which a program keeps its login. Only the program itself renews a login: a renewal token often works only
// once, so a second program that used it would end the login.
type login struct {
	folder, variable string // the folder below the home, and the variable that names another
	file             string
	token, ends      []string // fields; ends is in milliseconds since 1970, and nil for a token that does not end
	without          string   // advice if a login has no such token
}

// logins has the known programs that keep their login in a file.
var logins = map[string]login{
	"claude": {folder: ".claude", variable: "CLAUDE_CONFIG_DIR", file: ".credentials.json",
		token: []string{"claudeAiOauth", "accessToken"}, ends: []string{"claudeAiOauth", "expiresAt"}, without: "give a key"},
	"codex": {folder: ".codex", variable: "CODEX_HOME", file: "auth.json", token: []string{"OPENAI_API_KEY"},
		without: "a login with ChatGPT works on this machine alone, because codex needs all of it: give a key, or log in with one (codex login --with-api-key)"},
	"gemini": {folder: ".gemini", file: "oauth_creds.json", token: []string{"access_token"}, ends: []string{"expiry_date"}, without: "give a key"},
}

// Ended is the error for a login that has ended. Only its program on the host renews it.
type Ended struct {
	Program string
	At      time.Time
}

func (e *Ended) Error() string {
	return fmt.Sprintf("the login of %s ended at %s: use %[1]s once on this machine, outside of a prison, which renews it", e.Program, e.At.Format("2006-01-02 15:04"))
}

// path returns the path of the file with the login.
func (l login) path() string {
	folder := ""
	if l.variable != "" {
		folder = os.Getenv(l.variable)
	}
	if folder == "" {
		home, _ := os.UserHomeDir()
		folder = filepath.Join(home, l.folder)
	}
	return filepath.Join(folder, l.file)
}

// HasLogin reports whether a program has a login on this machine, even one that cannot be used.
func HasLogin(program string) bool {
	l, known := logins[program]
	if !known {
		return false
	}
	_, err := os.Stat(l.path())
	return err == nil
}

// ofLogin returns the source of a program's login.
func ofLogin(program string) (s Source, err error) {
	l, known := logins[program]
	if !known {
		return s, fmt.Errorf("the login of %q is not in a file that is known here; file:, keychain: and command: can name it", program)
	}
	return Source{Login: program, File: l.path(), Field: l.token}, nil
}

// readLogin reads the token of a login that has not ended.
func (s Source) readLogin() (string, error) {
	l := logins[s.Login]
	at, err := s.field(s.Field)
	token, ok := at.(string)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("%s has no login on this machine: run %[1]s here, and log in", s.Login)
	case err != nil:
		return "", err
	case !ok:
		return "", fmt.Errorf("%s has no token for a prison: %s", s.File, l.without)
	case l.ends == nil:
		return token, nil
	}
	if at, err = s.field(l.ends); err != nil {
		return "", err
	}
	millis, ok := at.(float64)
	if ends := time.UnixMilli(int64(millis)); ok && time.Now().After(ends) {
		return "", &Ended{Program: s.Login, At: ends}
	}
	return token, nil
}
