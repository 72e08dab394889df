// Package secret reads the values of credentials from the places where the user keeps them: on the host, with the user's rights.
//
// Only the process that reads a value, and processes that get it from there, have it in memory. No error contains a value or the output of
// a program.
package secret

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Secret is a credential with its value. The value must not be written to a file, an argument or an environment variable.
type Secret struct {
	Name, Value string
	Source      Source // reads the value again
}

// Source describes where a value comes from. The zero value is the source of a value that cannot be read again.
type Source struct {
	// Argv is a program that prints the value, with its absolute path and arguments. Input is its standard input, and Env its
	// environment.
	Argv  []string
	Input string
	Env   []string
	// Line is the beginning of the line with the value. Empty means that the output is the value, and a newline that the first line is.
	Line string
	// File contains the value, and Field is its place in JSON; empty means that the content is the value.
	File  string
	Field []string
	// Login is the name of the program whose login File contains.
	Login string
}

const (
	// patience is how long a program may take.
	patience = 10 * time.Second
	// delay is how long the output of a program that has exited may stay open. A program can leave a process behind that has it.
	delay = 500 * time.Millisecond
	// maxOutput and maxFile bound the output of a program and a file, in bytes.
	maxOutput, maxFile = 64 << 10, 1 << 20
)

// Forms describes the texts that [Parse] reads.
const Forms = "env:NAME, file:PATH[#FIELD.FIELD], login:PROGRAM, command:PROGRAM [ARGUMENTS], git, keychain:SERVICE/ACCOUNT, op://..., bw:ITEM, pass:NAME or vault:PATH#FIELD"

// Parse reads the text of a source for a host. For env:NAME it returns NAME as variable: the caller reads the variable.
func Parse(text, host string) (s Source, variable string, err error) {
	kind, rest, _ := strings.Cut(text, ":")
	words := strings.Fields(rest)
	switch {
	case kind == "env" && len(words) == 1:
		return s, rest, nil
	case kind == "file" && rest != "":
		return ofFile(rest), "", nil
	case kind == "login" && len(words) == 1:
		s, err = ofLogin(rest)
		return s, "", err
	case kind == "command" && len(words) > 0:
		s.Argv = words
	case text == "git":
		s.Argv, s.Input, s.Line = []string{"git", "credential", "fill"}, "protocol=https\nhost="+host+"\n\n", "password="
	case kind == "keychain" && strings.Count(rest, "/") == 1:
		service, account, _ := strings.Cut(rest, "/")
		s.Argv = []string{"secret-tool", "lookup", "service", service, "account", account}
		if runtime.GOOS == "darwin" {
			s.Argv = []string{"security", "find-generic-password", "-w", "-s", service, "-a", account}
		}
	case kind == "op" && strings.HasPrefix(rest, "//"):
		s.Argv = []string{"op", "read", "--no-newline", text}
	case kind == "bw" && rest != "":
		s.Argv = []string{"bw", "get", "password", strings.TrimPrefix(rest, "//")}
	case kind == "pass" && rest != "":
		s.Argv, s.Line = []string{"pass", "show", rest}, "\n"
	case kind == "vault" && strings.Count(rest, "#") == 1:
		path, field, _ := strings.Cut(rest, "#")
		s.Argv = []string{"vault", "kv", "get", "-field=" + field, path}
	default:
		return s, "", errors.New("want " + Forms)
	}
	if len(s.Argv) > 1 && kind != "command" && text != "git" && strings.HasPrefix(strings.TrimPrefix(rest, "//"), "-") {
		return s, "", errors.New("want " + Forms)
	}
	program, err := exec.LookPath(s.Argv[0])
	if err != nil {
		return s, "", fmt.Errorf("there is no program %s", s.Argv[0])
	}
	if !filepath.IsAbs(program) {
		return s, "", fmt.Errorf("the program %s has no absolute path", s.Argv[0])
	}
	s.Argv[0], s.Env = program, append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=")
	return s, "", nil
}

// Kinds returns the kinds of sources that need no program, or whose program this machine has.
func Kinds() []string {
	kinds := []string{"env", "file", "login", "command"}
	keychain := "secret-tool"
	if runtime.GOOS == "darwin" {
		keychain = "security"
	}
	for _, p := range []struct{ kind, program string }{{"git", "git"}, {"keychain", keychain}, {"op", "op"}, {"bw", "bw"}, {"pass", "pass"}, {"vault", "vault"}} {
		if _, err := exec.LookPath(p.program); err == nil {
			kinds = append(kinds, p.kind)
		}
	}
	return kinds
}

// ofFile reads PATH[#FIELD.FIELD].
func ofFile(text string) (s Source) {
	path, fields, some := strings.Cut(text, "#")
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, _ := os.UserHomeDir()
		path = filepath.Join(home, rest)
	}
	if s.File = path; some {
		s.Field = strings.Split(fields, ".")
	}
	return s
}

// Fixed reports whether a value cannot be read again.
func (s Source) Fixed() bool { return s.File == "" && len(s.Argv) == 0 }

// Read reads the value.
func (s Source) Read(ctx context.Context) (value string, err error) {
	switch {
	case s.Login != "":
		return s.readLogin()
	case s.File != "":
		return s.readFile()
	}
	output, err := s.run(ctx)
	if err != nil || s.Line == "" {
		return strings.TrimRight(output, "\r\n"), err
	}
	for line := range strings.Lines(output) {
		if rest, ok := strings.CutPrefix(line, strings.TrimSpace(s.Line)); ok {
			return strings.TrimRight(rest, "\r\n"), nil
		}
	}
	return "", fmt.Errorf("%s printed no value", filepath.Base(s.Argv[0]))
}

// run returns the output of the program. The program has no terminal, so that it cannot ask.
func (s Source) run(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.Argv[0], s.Argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin = "/", s.Env, strings.NewReader(s.Input)
	cmd.SysProcAttr, cmd.WaitDelay = &syscall.SysProcAttr{Setsid: true}, delay
	var out limited
	cmd.Stdout = &out
	err := cmd.Run()
	name := filepath.Base(s.Argv[0])
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil && !errors.Is(err, exec.ErrWaitDelay):
		return "", fmt.Errorf("%s took longer than %v", name, patience)
	case out.full:
		return "", fmt.Errorf("%s printed more than %d bytes", name, maxOutput)
	case errors.As(err, &exit):
		return "", fmt.Errorf("%s: %s", name, exit.ProcessState)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay): // which means that the program has exited with the status 0
		return "", fmt.Errorf("run %s: %w", name, err)
	}
	return string(out.text), nil
}

// limited keeps the output of a program, up to maxOutput.
type limited struct {
	text []byte
	full bool
}

func (l *limited) Write(p []byte) (int, error) {
	if l.full = l.full || len(l.text)+len(p) > maxOutput; l.full {
		return 0, io.ErrShortWrite
	}
	l.text = append(l.text, p...)
	return len(p), nil
}

func (s Source) readFile() (string, error) {
	if s.Field == nil {
		content, err := s.content()
		return strings.TrimRight(string(content), "\r\n"), err
	}
	at, err := s.field(s.Field)
	if err != nil {
		return "", err
	}
	value, ok := at.(string)
	if !ok {
		return "", fmt.Errorf("%s has no text at %s", s.File, strings.Join(s.Field, "."))
	}
	return value, nil
}

// field returns a field of the file, or nil if the file has none of that name.
func (s Source) field(names []string) (at any, err error) {
	content, err := s.content()
	if err != nil {
		return nil, err
	}
	if json.Unmarshal(content, &at) != nil {
		return nil, fmt.Errorf("%s is not JSON", s.File)
	}
	for _, name := range names {
		object, _ := at.(map[string]any)
		at = object[name]
	}
	return at, nil
}

// content reads the file, up to maxFile bytes.
func (s Source) content() ([]byte, error) {
	f, err := os.OpenFile(s.File, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may be a pipe
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil || len(content) > maxFile {
		return nil, errors.Join(err, fmt.Errorf("cannot read %s, or it is larger than %d bytes", s.File, maxFile))
	}
	return content, nil
}
