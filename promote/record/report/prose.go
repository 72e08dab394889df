package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/words"
)

// Calm returns the text that a report shows if there are no findings.
func (v View) Calm() Text {
	text := "Nothing that was refused, held or failed is in the record."
	for _, c := range v.Commits {
		switch {
		case len(c.Files) == 0:
			continue
		case len(v.Asked) == 0:
			return Text(text + " Whether the changes are where you asked for them is not checked: the command names none of the changed files.")
		}
		var names []string
		for _, t := range v.Asked[:min(3, len(v.Asked))] {
			names = append(names, t.Raw())
		}
		return Text(text + " All changed files are where the command names some: " + strings.Join(names, ", ") + ".")
	}
	return Text(text)
}

// Built reports whether the view has a commit with an id in the user's repository.
func (v View) Built() bool {
	return slices.ContainsFunc(v.Commits, func(c Commit) bool { return c.ID != "" })
}

// NewID returns the reason why a commit has two ids.
func (View) NewID() string {
	return "A commit has another id in your repository than in the workspace, since you become its author. Its message stays."
}

// OtherPrograms returns a sentence with the number of programs that are not listed.
func (v View) OtherPrograms() string {
	if v.Others <= 0 {
		return ""
	}
	return words.Count(v.Others, "other program") + verb(v.Others, " is", " are") + " not listed, such as what a test or git started itself: git airlock execs " + fmt.Sprint(v.Run.Number)
}

// When returns the time of a commit in words.
func (v View) When(c Commit) string { return c.when(v.Run.Ended.Sub(v.Run.Started)) }

// when returns the time of a commit in words, in a run of some length. If the time is the date that the agent chose, it has whole seconds only.
func (c Commit) when(length time.Duration) string {
	switch {
	case c.Time.IsZero():
		return "made at an unknown time"
	case c.Exact:
		return "made " + clock(c.Time, length)
	}
	return "made " + clock(c.Time, shortRun) + " by its own date"
}

// Lines returns the command as a user would type it, line by line.
func (r Run) Lines() (all []Text) {
	for line := range strings.SplitSeq(r.Command.Raw(), "\n") {
		all = append(all, Text(line))
	}
	return all
}

// Length returns in words how long a program ran. For a refused program, which did not run, the text is empty.
func (p Program) Length() string {
	if p.Took == 0 && p.Level == Bad {
		return ""
	}
	return took(p.Took)
}

// Hint returns a text with the number of things that have no mark in a lane. It is empty if there are none.
func (l Lane) Hint() string {
	switch {
	case l.Hidden <= 0:
		return ""
	case l.Name == "Commits":
		return fmt.Sprintf("%d more without a known time", l.Hidden)
	}
	return fmt.Sprintf("%d more not drawn", l.Hidden)
}

// Word is an explained word.
type Word struct{ Name, Meaning string }

// Words explains the words of a report that a reader may not know.
func (View) Words() []Word {
	return []Word{
		{"land", "to be put on your branch, with you as the author"},
		{"held, waits", "not on your branch yet, for the reason beside it"},
		{"workspace", "the agent's own copy of the repository, where it works"},
		{"prison", "what shuts a command in: it can change the workspace, and reach what its network allows"},
		{"gate", "the rules that each commit must pass before it lands"},
		{"flagged", "a rule of the gate reports the commit, and lets it land"},
		{"what the command names", "files and folders whose names are words of the command line; other changes may be as wanted"},
		{"checkpoint", "a saved state of the workspace, which can be restored"},
	}
}
