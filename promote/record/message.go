package record

import (
	"fmt"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/words"
)

// maxSubject bounds the part of the command line in a subject.
const maxSubject = 60

// Message returns the message of a record's commit. It follows from the manifest alone, so that a changed message is found.
func (m Manifest) Message() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nAirlock-Run-Version: %d\n", m.Subject(), Version)
	if m.Previous != "" {
		fmt.Fprintf(&b, "Airlock-Previous: %s\n", m.Previous)
	}
	return []byte(b.String())
}

// Subject returns the run in one line: its number, command and result. It is escaped.
func (m Manifest) Subject() string {
	result := string(m.Status)
	switch {
	case m.Signal != "":
		result = string(m.Signal)
	case m.Exit != nil:
		result = fmt.Sprintf("exit %d", *m.Exit)
	}
	line := fmt.Sprintf("run %d: %s -> %s", m.Run, m.Command(maxSubject), result)
	if m.Landed > 0 {
		line += fmt.Sprintf(", %d landed", m.Landed)
	}
	if len(m.Held) > 0 {
		line += ", held: " + gitops.Text(m.Held[0].Reason).String()
	}
	return line
}

// Command returns the command line, quoted for a shell and escaped, with at most that many characters.
func (m Manifest) Command(most int) string { return words.Shorten(m.CommandLine().String(), most) }

// CommandLine returns the command line, quoted for a shell.
func (m Manifest) CommandLine() gitops.Text {
	quoted := make([]string, len(m.Argv))
	for i, word := range m.Argv {
		quoted[i] = words.ShellQuote(word)
	}
	return gitops.Text(strings.Join(quoted, " "))
}
