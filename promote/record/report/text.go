package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/words"
)

// Paint colours words for a terminal.
type Paint interface {
	Bold(text string) string
	Red(text string) string
	Yellow(text string) string
	Green(text string) string
}

// JSON returns version 1 of report.json, which has at most [MaxHTML] bytes, as a page.
func (v View) JSON() ([]byte, error) {
	return v.fitting(func(v View) ([]byte, error) {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", " ")
		err := e.Encode(v.withLists())
		return b.Bytes(), err
	})
}

// withLists returns the view with empty lists where it has none, so that a reader of the document needs no case for them.
func (v View) withLists() View {
	v.First, v.Answers, v.Commits = append([]Finding{}, v.First...), append([]Answer{}, v.Answers...), append([]Commit{}, v.Commits...)
	v.Programs, v.Hosts, v.Events = append([]Program{}, v.Programs...), append([]Host{}, v.Hosts...), append([]Event{}, v.Events...)
	for _, list := range []*[]Text{&v.Asked, &v.Unseen, &v.Always, &v.Output, &v.LeftOut} {
		*list = append([]Text{}, *list...)
	}
	v.Run.Facts, v.Axis.Ticks = append([]Fact{}, v.Run.Facts...), append([]Tick{}, v.Axis.Ticks...)
	v.Axis.Lanes, v.Axis.Plots = append([]Lane{}, v.Axis.Lanes...), append([]Plot{}, v.Axis.Plots...)
	for i, c := range v.Commits {
		v.Commits[i].Files = append([]File{}, c.Files...)
	}
	for i, l := range v.Axis.Lanes {
		v.Axis.Lanes[i].Marks = append([]Mark{}, l.Marks...)
	}
	for i, p := range v.Axis.Plots {
		v.Axis.Plots[i].Points = append([][2]float64{}, p.Points...)
	}
	return v
}

// Print prints the view for a terminal. It leaves out the changed lines. If there are many programs, it also leaves out those whose result needs
// no attention.
func (v View) Print(w io.Writer, p Paint) error {
	d := drawing{p: p}
	v = v.scaled(0)
	d.line("%s %s", d.level(v.Level, v.Level.Sign()), p.Bold(v.Verdict.String()))
	d.line("  run %d on the branch %s, %s, %s", v.Run.Number, v.Run.Branch, span(v.Run.Started, v.Run.Ended), d.level(v.Run.Level, v.Run.Status.String())+meaning(v.Run))
	d.line("  $ %s", v.Run.Command)
	d.heading("look at this first")
	if len(v.First) == 0 {
		d.line("  %s", v.Calm())
	}
	for _, f := range v.First {
		d.line("  %s %s: %s", d.level(f.Level, f.Level.Sign()), strings.ToLower(f.Kind), f.Text)
		d.details("      ", f.Detail)
	}
	d.heading("what could not be seen")
	d.unseen("in this run:", v.Unseen)
	d.unseen("in every run, or not exactly:", v.Always)
	d.heading("answers")
	for _, a := range v.Answers {
		sign := " "
		if a.Level != Good {
			sign = d.level(a.Level, a.Level.Sign())
		}
		d.line("%s %-11s %s", sign, strings.ToLower(a.Name), a.Text)
		d.details("              ", a.Detail)
	}
	d.course(v)
	d.commits(v)
	d.programs(v)
	d.network(v.Hosts)
	d.rest(v)
	_, err := w.Write(d.b.Bytes())
	return err
}

// drawing is a report for a terminal that is being written.
type drawing struct {
	b bytes.Buffer
	p Paint
}

func (d *drawing) line(format string, values ...any) { fmt.Fprintf(&d.b, format+"\n", values...) }

func (d *drawing) heading(text string) { d.line("\n%s", d.p.Bold(text)) }

func (d *drawing) details(indent string, all []Text) {
	for _, t := range all {
		d.line("%s%s", indent, t)
	}
}

func (d *drawing) unseen(when string, all []Text) {
	if len(all) > 0 {
		d.line("  %s", when)
	}
	for _, t := range all {
		d.line("  - %s", t)
	}
}

// meaning returns the meaning of a status in parentheses.
func meaning(r Run) string {
	if r.Meaning == "" {
		return ""
	}
	return " (" + r.Meaning.String() + ")"
}

// level colours a text by its level. The text must be readable without the colour.
func (d *drawing) level(l Level, text string) string {
	switch l {
	case Bad:
		return d.p.Red(text)
	case Look:
		return d.p.Yellow(text)
	}
	return d.p.Green(text)
}

// columns is the width of the axis of time in characters.
const columns = 60

// course prints the axis of time. Each lane is a row of characters.
func (d *drawing) course(v View) {
	d.heading("course of the run")
	for _, lane := range v.Axis.Lanes {
		row := []byte(strings.Repeat(".", columns))
		for _, pass := range []Level{Good, Look, Bad} { // the worst mark of a column stays
			for _, m := range lane.Marks {
				if m.Level == pass {
					m.draw(row)
				}
			}
		}
		d.line("  %-10s %s  %s", strings.ToLower(lane.Name), row, comma(fmt.Sprint(lane.Count), lane.Hint()))
	}
	for _, plot := range v.Axis.Plots {
		row := []rune(strings.Repeat(" ", columns))
		for _, point := range plot.Points {
			at := column(point[0])
			if bar := bars[min(len(bars)-1, int(point[1]/100*float64(len(bars))))]; bar > row[at] || row[at] == ' ' {
				row[at] = bar
			}
		}
		d.line("  %-10s %s  up to %s", strings.ToLower(plot.Name), string(row), plot.Top)
	}
	axis := []byte(strings.Repeat(" ", columns+8))
	for _, t := range v.Axis.Ticks {
		copy(axis[column(t.At):], t.Label)
	}
	d.line("  %-10s %s", "utc", strings.TrimRight(string(axis), " "))
	d.line("  = a program that ran for a while, | a moment, * the end of the program that made a commit, x failed or refused, ! to look at")
}

// comma joins words that are not empty.
func comma(words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ", ")
}

var bars = []rune("▁▂▃▄▅▆▇█")

func column(at float64) int { return min(columns-1, int(at/100*columns)) }

// draw draws a mark into a row: x for what is bad, ! for what to look at, = for a span, | for a moment.
func (m Mark) draw(row []byte) {
	sign := map[Level]byte{Bad: 'x', Look: '!'}[m.Level]
	switch {
	case m.Level == Good && m.Length > 0:
		sign = '='
	case m.Level == Good && m.Number > 0:
		sign = '*'
	case m.Level == Good:
		sign = '|'
	}
	for i := column(m.At); i <= column(m.At+m.Length); i++ {
		row[i] = sign
	}
}

func (d *drawing) commits(v View) {
	d.heading("commits")
	if len(v.Commits) == 0 {
		d.line("  none")
	} else if v.Built() {
		d.line("  %s", v.NewID())
	}
	for _, c := range v.Commits {
		id, inside := "", "in the workspace "+c.Inner.String()
		if c.ID != "" {
			id = "as " + d.p.Yellow(c.ID.String())
		}
		d.line("  %d. %s", c.Number, d.p.Bold(c.Subject.String()))
		d.line("       %s", comma(strings.TrimSpace(d.level(c.Level, c.State.String())+" "+id), inside, v.When(c)))
		for _, t := range c.Body[:min(shownBody, len(c.Body))] {
			d.line("       | %s", t)
		}
		for _, f := range c.Files {
			outside := ""
			if f.Outside {
				outside = "  " + d.level(Look, "! not where the command names files")
			}
			d.line("       %s %s +%d -%d%s", f.What, f.Path, f.Added, f.Removed, outside)
		}
		if c.LeftOut != "" && len(c.Files) == 0 {
			d.line("       %s", c.LeftOut)
		}
	}
}

const (
	shownBody     = 8  // lines of a message in a text
	shownPrograms = 24 // programs in a text, before plain ones are left out
)

// programs prints the programs, or only those with a result to look at and tests, if there are many.
func (d *drawing) programs(v View) {
	d.heading("programs")
	plain := 0
	for _, x := range v.Programs {
		if len(v.Programs) > shownPrograms && x.Level == Good && !x.Test && !x.Disputed {
			plain++
			continue
		}
		d.line("  %s %s  %s%s", v.Clock(x.Time), d.level(x.Level, x.Level.Sign()+" "+x.Result.String()), x.Command, addition(x))
	}
	if plain > 0 {
		d.line("  %s without a result to look at %s in the page", words.Count(plain, "program"), verb(plain, "is", "are"))
	}
	if others := v.OtherPrograms(); others != "" {
		d.line("  %s", others)
	}
	if len(v.Programs) == 0 {
		d.line("  none are recorded")
	}
}

// addition returns how long a program ran, and whether it is disputed.
func addition(x Program) string {
	text := ""
	if length := x.Length(); length != "" {
		text = " (" + length + ")"
	}
	if x.Disputed {
		text += ", disputed"
	}
	return text
}

func (d *drawing) network(hosts []Host) {
	d.heading("network")
	if len(hosts) == 0 {
		d.line("  no host was asked for")
	}
	for _, h := range hosts {
		d.line("  %s %s: %s, %s sent, %s received", d.level(h.Level, h.Level.Sign()+" "+h.Result.String()), h.Name, h.Often(), words.Bytes(h.Sent), words.Bytes(h.Received))
	}
}

// rest prints the events, the last output, the data that identifies the record, the explained words, and a note on what only the page has.
func (d *drawing) rest(v View) {
	if len(v.Events) > 0 {
		d.heading("events")
		for _, e := range v.Events {
			d.line("  %s %s  %s", v.Clock(e.Time), d.level(e.Level, e.Kind.String()), e.Text)
		}
	}
	if len(v.Output) > 0 {
		d.heading("what it printed last")
		for _, t := range v.Output {
			d.line("  %s", strings.ReplaceAll(code(t), "\t", "    "))
		}
	}
	d.heading("record")
	for _, f := range v.Run.Facts {
		d.line("  %-18s %s", strings.ToLower(f.Name), f.Value)
	}
	for _, t := range v.LeftOut {
		d.line("  %-18s %s", "not shown here", t)
	}
	d.heading("words")
	for _, w := range v.Words() {
		d.line("  %-18s %s", w.Name, w.Meaning)
	}
	d.line("\nHidden characters are shown as escapes. Changed lines are in the page: git airlock report %d --open", v.Run.Number)
}
