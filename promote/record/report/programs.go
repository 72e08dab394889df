package report

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/words"
)

// program is one execution, with data for the report.
type program struct {
	record.Exec
	test   bool   // a test that no other test started
	commit bool   // it makes commits
	host   string // a host of its command line that was refused while it ran
	line   Text   // see [program.command]
}

// command returns the command line as it would be typed.
func (p *program) command() Text {
	if p.line == "" {
		p.line = commandOf(p.Argv)
	}
	return p.line
}

// programsOf finds the tests in the record of programs. A test of a test, such as a compiled test of "go test", does not count.
func programsOf(execs []record.Exec) []program {
	all := make([]program, 0, len(execs))
	within := map[int]bool{} // by pid: the process, or one above it, is a test
	last := map[int]int{}    // by pid: the index of the last execution
	for _, e := range execs {
		if i, known := last[e.PID]; known && i == len(all)-1 && refusedAgain(all[i].Exec, e) {
			all[i].Path = e.Path
			continue
		}
		p := program{Exec: e, commit: makesCommits(e.Argv)}
		below := within[e.PPID] || within[e.PID] && replaced(all, last, e)
		p.test = !below && e.Deny == nil && isTest(e.Argv)
		within[e.PID] = below || p.test
		last[e.PID] = len(all)
		all = append(all, p)
	}
	for i := range all {
		inherit(all, i, last)
	}
	return all
}

// refusedAgain reports whether a refused execution is the one before it in another folder of PATH. A program that is looked for in
// five folders is refused five times.
func refusedAgain(before, e record.Exec) bool {
	return before.Deny != nil && e.Deny != nil && *before.Deny == *e.Deny && before.PPID == e.PPID && slices.Equal(before.Argv, e.Argv) &&
		before.Path != e.Path && e.Time.Sub(before.Time) < time.Second
}

// replaced reports whether an execution replaces another one in the same process, instead of reusing the number of an older one.
func replaced(all []program, last map[int]int, e record.Exec) bool {
	i, ok := last[e.PID]
	return ok && all[i].Exit == nil && all[i].PPID == e.PPID
}

// inherit gives a test that was replaced by another program, as exec does in a shell, the result of that program.
func inherit(all []program, i int, last map[int]int) {
	p := &all[i]
	if j := last[p.PID]; p.test && p.Exit == nil && j > i && all[j].PPID == p.PPID {
		p.Exit, p.Millis = all[j].Exit, all[j].Millis
	}
}

// tests are command lines that run tests. They are matched against the words of a command line with the base name of the
// program, without its options.
var tests = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(go test|cargo (test|nextest)|(npm|yarn|pnpm|bun|deno)( run)? test\S*|npx (jest|vitest|mocha|playwright)|pytest\S*|py\.test|tox|nox|` +
		`python[0-9.]* (pytest|unittest)|make (test|check)\S*|ninja test|ctest|rspec|(bundle exec )?(rspec|rake test)|rake test|mvnw? (test|verify)|gradlew? (test|check)|` +
		`jest|vitest|mocha|dotnet test|phpunit|bazel test|mix test|swift test|zig build test|bats|prove|(\S+[-_.])?tests?(\.(sh|py|js|rb|pl|ts))?|test[-_.]\S+)( |$)`)
})

// parts are texts of which [tests] needs at least one. Looking for them takes a tenth of the time of the expression.
var parts = []string{"test", "jest", "spec", "mocha", "playwright", "tox", "nox", "check", "verify", "phpunit", "bats", "prove"}

// isTest reports whether a command line looks like a run of tests. It is a guess from names.
func isTest(argv []string) bool {
	words := plainWords(argv)
	if line := strings.Join(words, " "); !slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(line, part) }) {
		return false
	}
	if len(words) == 0 || words[0] == "test" && !strings.Contains(argv[0], "/") { // test(1), which compares
		return false
	}
	if interpreter().MatchString(words[0]) && len(words) > 1 {
		if script := path.Base(words[1]); tests().MatchString(script + " ") {
			return true
		}
	}
	return tests().MatchString(strings.Join(words, " "))
}

var interpreter = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(python[0-9.]*|node|ruby|perl|sh|bash|dash|zsh)$`)
})

// plainWords returns the words of a command line that are not options, with the base name of the program.
func plainWords(argv []string) (words []string) {
	for i, word := range argv[:min(len(argv), 8)] {
		switch {
		case i == 0:
			words = append(words, strings.TrimPrefix(path.Base(word), "-"))
		case word != "" && !strings.HasPrefix(word, "-"):
			words = append(words, word)
		}
	}
	return words
}

// makesCommits reports whether a command line may make a commit.
func makesCommits(argv []string) bool {
	if len(argv) == 0 || !strings.HasSuffix(argv[0], "git") {
		return false
	}
	words := plainWords(argv)
	return len(words) > 1 && words[0] == "git" && slices.ContainsFunc(words[1:min(len(words), 4)], func(w string) bool {
		return slices.Contains([]string{"commit", "merge", "rebase", "am", "cherry-pick", "revert", "commit-tree"}, w)
	})
}

// commandOf returns a command line as it would be typed.
func commandOf(argv []string) Text {
	var line []string
	length := 0
	for _, word := range argv {
		line = append(line, words.ShellQuote(word))
		if length += len(word) + 1; length > 2*longest {
			break
		}
	}
	return Text(strings.Join(line, " "))
}

// unstarted reports whether no file ran. A shell that tries the folders of PATH one after the other makes such executions.
func (p program) unstarted() bool { return p.Deny == nil && p.Exit == nil && p.Exe == "" }

// result returns the result of a program in words, and its level.
func (p program) result() (Text, Level) {
	switch {
	case p.Deny != nil:
		return Text("refused: " + *p.Deny), Bad
	case p.unstarted():
		return "did not start", Plain
	case p.Exit == nil:
		return "its end was not seen", Plain
	case p.host != "":
		return Text(fmt.Sprintf("exit status %d, and %s was refused", *p.Exit, p.host)), Look
	case *p.Exit > 128:
		return Text(fmt.Sprintf("signal %d", *p.Exit-128)), Look
	case p.test && *p.Exit != 0:
		return Text(fmt.Sprintf("failed, exit status %d", *p.Exit)), Bad
	case p.test:
		return "passed", Good
	case *p.Exit != 0:
		return Text(fmt.Sprintf("exit status %d", *p.Exit)), Plain
	}
	return "exit status 0", Good
}

func (p program) took() time.Duration {
	if p.Millis == nil {
		return 0
	}
	return time.Duration(max(0, *p.Millis)) * time.Millisecond
}

// viewPrograms returns the programs that a reader may ask for: those that the command started itself, tests, and programs that were refused or
// disputed.
func (m *material) viewPrograms() (all []Program) {
	anyTop := slices.ContainsFunc(m.programs, func(p program) bool { return p.Top })
	for i := range m.programs {
		p := &m.programs[i]
		if anyTop && !p.Top && !p.test && !p.commit && p.Deny == nil && !p.Disputed {
			continue
		}
		text, level := p.result()
		all = append(all, Program{Time: p.Time, Command: p.command(), Result: text, Took: p.took(), Level: level, Test: p.test, Disputed: p.Disputed})
	}
	return all
}

// findRefused finds programs whose command line names a host that was refused while they ran. Their exit status may be 0.
func (m *material) findRefused() {
	for _, r := range m.egress {
		host := cmp.Or(r.Name, r.Address)
		if host == "" || r.Kind != control.KindRefusal {
			continue
		}
		for i := range m.programs {
			p := &m.programs[i]
			ran := !r.Time.Before(p.Time.Add(-time.Second)) && (p.Millis == nil || !r.Time.After(p.Time.Add(p.took()+time.Second)))
			if ran && p.host == "" && p.Deny == nil && slices.ContainsFunc(p.Argv, func(w string) bool { return strings.Contains(w, host) }) {
				p.host = host
			}
		}
	}
}

// suite sums up the runs of tests in the record.
type suite struct {
	runs, failed, unknown int
	last                  *program
	after                 int        // commits that were made after the last test began
	others                []*program // the last run of each other command line, the newest first
}

// addOther keeps a run that is not the last one, if none of the same command line is kept.
func (s *suite) addOther(p *program) {
	s.others = slices.DeleteFunc(s.others, func(o *program) bool { return slices.Equal(o.Argv, p.Argv) })
	s.others = slices.Insert(s.others, 0, p)
}

// shownOthers is how many other tests a report names.
const shownOthers = 3

// otherTests describes the results of tests with other arguments.
func (m *material) otherTests(s suite) (all []Text) {
	for _, p := range s.others[:min(len(s.others), shownOthers)] {
		result, _ := p.result()
		all = append(all, Text(fmt.Sprintf("another one, %s, at %s: %s", p.command().Raw(), m.clock(p.Time), result.Raw())))
	}
	return all
}

func (m *material) suite() (s suite) {
	for i := range m.programs {
		p := &m.programs[i]
		switch {
		case p.test:
			if s.last != nil {
				s.addOther(s.last)
			}
			s.runs++
			s.last, s.after = p, 0
			if p.Exit == nil {
				s.unknown++
			} else if *p.Exit != 0 {
				s.failed++
			}
		case p.commit && p.Exit != nil && *p.Exit == 0:
			s.after++
		}
	}
	if s.last != nil {
		s.others = slices.DeleteFunc(s.others, func(o *program) bool { return slices.Equal(o.Argv, s.last.Argv) })
	}
	return s
}
