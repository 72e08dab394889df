package report

import (
	"time"

	"github.com/git-airlock/git-airlock/gitops"
)

// Version is the version of report.json.
const Version = 1

// View is the content of a report: version 1 of report.json.
type View struct {
	Version  int       `json:"version"`
	Run      Run       `json:"run"`
	Level    Level     `json:"level"`
	Verdict  Text      `json:"verdict"` // one sentence
	First    []Finding `json:"first"`   // what to look at first, the worst first
	Asked    []Text    `json:"asked"`   // the changed files and folders that the command names; without any, no file is outside
	Unseen   []Text    `json:"unseen"`  // what could not be seen in this run
	Always   []Text    `json:"always"`  // what cannot be seen in any run, or not exactly
	Answers  []Answer  `json:"answers"` // to the questions in the documentation of this package, in that order
	Axis     Axis      `json:"axis"`
	Commits  []Commit  `json:"commits"`
	Programs []Program `json:"programs"`
	Others   int       `json:"other_programs"` // programs that are not among them: others started them
	Hosts    []Host    `json:"hosts"`
	Events   []Event   `json:"events"`
	Output   []Text    `json:"output"`   // the last lines that the command printed
	LeftOut  []Text    `json:"left_out"` // what is in the record but not here
}

// Text is text of a record, which is escaped wherever it is shown.
type Text = gitops.Text

// Level tells a reader how much attention something needs.
type Level string

// The levels.
const (
	Good  Level = "good"  // nothing to look at
	Plain Level = "plain" // nothing that can be rated, such as a program that compares and ends with exit status 1
	Look  Level = "look"  // something to look at
	Bad   Level = "bad"   // something failed, was refused, or broke a promise
)

func rank(l Level) int { return map[Level]int{Good: 0, Plain: 0, Look: 1, Bad: 2}[l] }

// Word is the level as a word, since a colour alone is not readable for everybody.
func (l Level) Word() string {
	return map[Level]string{Good: "fine", Plain: "not rated", Look: "look", Bad: "attention"}[l]
}

// Sign is a character for the level.
func (l Level) Sign() string {
	return map[Level]string{Good: "✓", Plain: "·", Look: "!", Bad: "×"}[l]
}

// Run identifies the run.
type Run struct {
	Session Text      `json:"session"`
	Number  int       `json:"number"`
	Command Text      `json:"command"` // as it would be typed, without secrets
	Status  Text      `json:"status"`
	Level   Level     `json:"level"`   // of the status: a refusal is not a failure of the command
	Meaning Text      `json:"meaning"` // of the status, if it needs one
	Branch  Text      `json:"branch"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	Facts   []Fact    `json:"facts"` // where and how it ran
}

// Fact is one named value.
type Fact struct {
	Name  string `json:"name"`
	Value Text   `json:"value"`
}

// Finding is one thing to look at.
type Finding struct {
	Level  Level  `json:"level"`
	Kind   string `json:"kind"`  // such as "refused", "tests", "held"
	Text   Text   `json:"text"`  // one line
	Where  string `json:"where"` // the section of the report with the details: time, commits, programs, network or events
	Detail []Text `json:"detail,omitempty"`
}

// Answer is the answer to one question.
type Answer struct {
	Question string `json:"question"`
	Name     string `json:"name"` // the question in one or two words
	Level    Level  `json:"level"`
	Text     Text   `json:"text"`
	Detail   []Text `json:"detail,omitempty"`
}

// Axis is the course of the run on one axis of time.
type Axis struct {
	Ticks []Tick `json:"ticks"`
	Lanes []Lane `json:"lanes"`
	Plots []Plot `json:"plots"`
}

// Tick is a labelled position on the axis. All positions are in percent of the run's time.
type Tick struct {
	At    float64 `json:"at"`
	Label string  `json:"label"`
}

// Lane is a row of marks.
type Lane struct {
	Name   string `json:"name"`
	Count  int    `json:"count"`            // of the marks
	Hidden int    `json:"hidden,omitempty"` // number of things without a mark: programs that others started, and commits whose time is not known
	Marks  []Mark `json:"marks"`
}

// Mark is a span or a moment. A moment has no length.
type Mark struct {
	At     float64 `json:"at"`
	Length float64 `json:"length"`
	Level  Level   `json:"level"`
	Text   Text    `json:"text"`
	Number int     `json:"number,omitempty"` // of a commit in the report
}

// Plot is one resource over time.
type Plot struct {
	Name   string       `json:"name"`
	Top    string       `json:"top"` // the highest value, with its unit
	Points [][2]float64 `json:"points"`
}

// Commit is one commit of the agent.
type Commit struct {
	Number  int       `json:"number"`
	ID      Text      `json:"id"`    // in the user's repository, where git and the commands know it; empty if it was not built
	Inner   Text      `json:"inner"` // in the workspace, which has another id
	Subject Text      `json:"subject"`
	Body    []Text    `json:"body,omitempty"`
	Time    time.Time `json:"time"`
	Exact   bool      `json:"exact"` // Time is the end of the program that made the commit, and not the date that the agent gave it
	State   Text      `json:"state"` // landed, or why not
	Level   Level     `json:"level"`
	Files   []File    `json:"files"`
	Added   int       `json:"added"`
	Removed int       `json:"removed"`
	LeftOut Text      `json:"left_out,omitempty"` // what is not shown of the files and lines
}

// File is one changed file of a commit.
type File struct {
	Path    Text   `json:"path"`
	What    string `json:"what"` // added, removed, renamed or changed
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Outside bool   `json:"outside,omitempty"` // not below what the command names
	Lines   []Line `json:"lines,omitempty"`
}

// Line is one line of a difference. Its kind is "+", "-", " " or "@".
type Line struct {
	Kind string `json:"kind"`
	Text Text   `json:"text"`
}

// Program is a program that ran, or that was refused.
type Program struct {
	Time     time.Time     `json:"time"`
	Command  Text          `json:"command"`
	Result   Text          `json:"result"`
	Took     time.Duration `json:"took_ns"`
	Level    Level         `json:"level"`
	Test     bool          `json:"test"` // it looks like a test
	Disputed bool          `json:"disputed,omitempty"`
}

// Host is one destination of the network.
type Host struct {
	Name        Text  `json:"name"`
	Requests    int   `json:"requests"`    // as far as the network has seen them: over plain HTTP, or where it ends TLS itself
	Connections int   `json:"connections"` // which may have had requests that nobody saw
	Sent        int64 `json:"sent"`
	Received    int64 `json:"received"`
	Result      Text  `json:"result"` // reached, its answers if none was good, or why it was refused
	Level       Level `json:"level"`

	refusing bool // it has answered requests, and none of them well
}

// Event is one entry of the event log.
type Event struct {
	Time  time.Time `json:"time"`
	Level Level     `json:"level"`
	Kind  Text      `json:"kind"`
	Text  Text      `json:"text"`
}
