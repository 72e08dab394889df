package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/words"
)

func init() { scriptCommands["offers"] = cmdOffers }

// TestCompletion types into a real bash, zsh and fish.
func TestCompletion(t *testing.T) {
	needNative(t)
	needPrograms(t, "bash", "zsh", "fish")
	t.Parallel()
	runScripts(t, scriptsIn(t, "shells"), testscript.Params{Setup: setup(t)})
}

// TestWordsInShells gives quoted words of any characters to a program in each shell, and cuts no comment off such words.
func TestWordsInShells(t *testing.T) {
	needPrograms(t, "bash", "dash", "zsh", "fish")
	t.Parallel()
	want := []string{"", "-n", "#x", "=ls", "%1", "~", "it's", `\`, `\\`, `y\';touch pwn;#`, `\'  # `, `a"  # b`, "a\n\"  # b", "!!", "{a,b}", "a=~", "$HOME", "(true)", "\U0001f600"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		word := make([]rune, 1+random.IntN(8))
		for i := range word {
			word[i] = []rune(`'\" #$;=%!~*(a` + "\x1b\u200b")[random.IntN(16)]
		}
		want = append(want, string(word))
	}
	var script strings.Builder
	for _, w := range want {
		quoted := gitops.Pasteable(w)
		if command, comment := words.CutComment(quoted + "  # why"); command != quoted || comment != "why" {
			t.Errorf("%q: the comment of %s is %q", w, quoted, comment)
		}
		fmt.Fprintf(&script, "printf '%%s\\0' %s\n", quoted)
	}
	for _, shell := range [][]string{{"bash"}, {"dash"}, {"zsh", "-f"}, {"fish", "--no-config"}} {
		c := exec.CommandContext(t.Context(), shell[0], shell[1:]...)
		c.Dir, c.Stdin = t.TempDir(), strings.NewReader(script.String())
		out, err := c.Output()
		got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %q, want %q", shell[0], err, got, want)
		}
		if made, _ := os.ReadDir(c.Dir); len(made) > 0 {
			t.Errorf("%s has run a part of a word", shell[0])
		}
	}
}

// shellSetups configure a shell so that the key sequence "insert" inserts all completions of a line, and "show" prints the line
// between guillemets.
var shellSetups = map[string]struct {
	argv         []string
	setup        string
	insert, show string
}{
	"bash": {[]string{"bash", "--norc", "--noprofile", "-i"}, `PS1=
bind 'set bell-style none' 'set completion-query-items -1' 'set disable-completion off'
show() { printf '«%s»\n' "$READLINE_LINE"; READLINE_LINE=; READLINE_POINT=0; }
bind -x '"\C-xs": show'
. /usr/share/bash-completion/completions/git; . <(git-airlock completion bash); echo rea''dy
`, "\x1b*", "\x18s"},
	"zsh": {[]string{"zsh", "-f", "-i"}, `PS1= PS2= RPS1=; unsetopt beep prompt_cr prompt_sp; mkdir -p $HOME/zsh; git-airlock completion zsh >$HOME/zsh/_git-airlock; fpath=($HOME/zsh $fpath); autoload -Uz compinit; compinit -u -D
zle -C everything complete-word _generic; zstyle ':completion:everything:*' completer _all_matches _complete; zstyle ':completion:everything:*' insert true; bindkey '^Xa' everything
show() { print -rn -- "«$BUFFER»"; BUFFER=; }; zle -N show; bindkey '^Xs' show; echo rea''dy
`, "\x18a", "\x18s"},
}

// offers SHELL TABLE completes the lines of a table, "LINE => WORD...". It checks that each word is offered, and that words after "!"
// are not.
func cmdOffers(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 2, "offers SHELL TABLE")
	var lines, wants []string
	for row := range strings.Lines(ts.ReadFile(args[1])) {
		line, want, ok := strings.Cut(strings.TrimSuffix(row, "\n"), " => ")
		if !ok {
			ts.Fatalf("%q is not a row", row)
		}
		lines, wants = append(lines, os.Expand(line, ts.Getenv)), append(wants, os.Expand(want, ts.Getenv))
	}
	for i, got := range completeIn(ts, args[0], lines) {
		line := lines[i]
		ts.Logf("%s: %s => %s", args[0], line, got)
		wanted := true
		for _, word := range strings.Fields(wants[i]) {
			if word == "!" {
				wanted = false
				continue
			}
			word = strings.ReplaceAll(word, "␣", " ")
			// The last word of the line may begin before the replaced part.
			pattern := regexp.MustCompile(`(^|[\s=:])` + regexp.QuoteMeta(word) + `/?($|\s)`)
			if pattern.MatchString(strings.ReplaceAll(got, `\`, "")) != wanted {
				ts.Fatalf("%s: completing %q: %q among what is offered: want %v; offered: %q", args[0], line, word, wanted, got)
			}
		}
	}
}

// completeIn returns what a shell offers for each line.
func completeIn(ts *testscript.TestScript, shell string, lines []string) (offered []string) {
	if _, ok := shellSetups[shell]; !ok {
		return completeInFish(ts, lines)
	}
	s := openShell(ts, shell)
	defer s.close()
	for _, line := range lines {
		offered = append(offered, s.complete(ts, line))
	}
	return offered
}

// completeInFish uses fish's own command for completions. One fish completes all lines, since each start takes 0.2 s.
func completeInFish(ts *testscript.TestScript, lines []string) (offered []string) {
	home := ts.Getenv("HOME")
	confd := filepath.Join(home, ".local/share/fish/vendor_conf.d")
	script := filepath.Join(confd, "git-airlock.fish")
	if _, err := os.Stat(script); err != nil {
		ts.Check(os.MkdirAll(confd, 0o755))
		ts.Check(ts.Exec("git-airlock", "completion", "fish"))
		ts.Check(os.WriteFile(script, []byte(ts.ReadFile("stdout")), 0o600))
	}
	ts.Check(ts.Exec("fish", append([]string{"-c", `for line in $argv; complete -C "$line"; printf '\0'; end`}, lines...)...))
	for rows := range strings.SplitSeq(strings.TrimSuffix(ts.ReadFile("stdout"), "\x00"), "\x00") {
		var words []string
		for row := range strings.Lines(rows) {
			word, _, _ := strings.Cut(row, "\t")
			words = append(words, strings.TrimSpace(word))
		}
		offered = append(offered, strings.Join(words, "\n"))
	}
	if len(offered) != len(lines) {
		ts.Fatalf("fish completed %d of %d lines", len(offered), len(lines))
	}
	return offered
}

// shellSession is a shell on a terminal.
type shellSession struct {
	name     string
	terminal *os.File
	screen   *screen
	cmd      *exec.Cmd
}

func openShell(ts *testscript.TestScript, name string) *shellSession {
	ours, theirs, err := openTerminal()
	ts.Check(err)
	s := &shellSession{name: name, terminal: ours, screen: &screen{}}
	argv := shellSetups[name].argv
	s.cmd = exec.Command(argv[0], argv[1:]...)
	s.cmd.Dir, s.cmd.Env = ts.MkAbs("."), append(environ(ts), "TERM=vt100", "COLUMNS=10000", "LINES=100", "ZDOTDIR="+ts.Getenv("HOME"))
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = theirs, theirs, theirs
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	ts.Check(converse(ours, s.screen, "size 100 4000"))
	go func() { _, _ = s.screen.readFrom(ours) }()
	ts.Check(s.cmd.Start())
	theirs.Close()
	_, err = s.terminal.WriteString(shellSetups[name].setup)
	ts.Check(err)
	ts.Check(converse(ours, s.screen, "< ready"))
	return s
}

func (s *shellSession) close() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.terminal.Close()
}

// complete types a line, inserts all completions, and returns the resulting line.
func (s *shellSession) complete(ts *testscript.TestScript, line string) string {
	from := len(s.screen.String())
	_, err := s.terminal.WriteString(line + shellSetups[s.name].insert + shellSetups[s.name].show)
	ts.Check(err)
	var shown string
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		shown = s.screen.String()[from:]
		if i, j := strings.LastIndex(shown, "«"), strings.LastIndex(shown, "»"); i >= 0 && j > i {
			return shown[i+len("«") : j]
		}
		if time.Now().After(end) {
			ts.Check(fmt.Errorf("%s does not complete %q; shown: %q", s.name, line, shown))
		}
	}
}
