package report

import (
	"fmt"
	"unicode/utf8"

	"github.com/git-airlock/git-airlock/words"
)

// The sizes of a whole view. Each scale halves them, see [View.HTML].
const (
	longest      = 300 // bytes of a text
	mostLines    = 6000
	mostFiles    = 400
	mostCommits  = 100
	mostPrograms = 200
	mostHosts    = 100
	mostEvents   = 200
	mostFindings = 40
	mostUnseen   = 40
	mostMarks    = 400
	mostDetails  = 12
	mostBody     = 60
)

// scaled returns a smaller view, and adds what is missing to its LeftOut.
func (v View) scaled(scale int) View {
	missing := map[string]int{}
	v.First, missing["finding"] = firstOf(v.First, mostFindings>>scale)
	v.Unseen, missing["line about what could not be seen"] = firstOf(v.Unseen, mostUnseen>>scale)
	v.Programs, missing["program"] = importantPrograms(v.Programs, mostPrograms>>scale)
	v.Hosts, missing["host"] = firstOf(v.Hosts, mostHosts>>scale)
	v.Events, missing["event"] = firstOf(v.Events, mostEvents>>scale)
	v.Commits, missing["commit"] = firstOf(v.Commits, mostCommits>>scale)
	v.scaleCommits(scale)
	v.scaleAxis(scale)
	v.shorten(longest >> min(scale, 3))
	v.LeftOut = nil
	for _, thing := range []string{"finding", "line about what could not be seen", "commit", "program", "host", "event"} {
		if n := missing[thing]; n > 0 {
			v.LeftOut = append(v.LeftOut, Text(words.Count(n, thing)))
		}
	}
	return v
}

// firstOf returns the first elements of a list, and the number of those that are left out.
func firstOf[T any](all []T, most int) (first []T, left int) {
	most = min(len(all), max(1, most))
	return append([]T{}, all[:most]...), len(all) - most
}

// important reports whether a reader should see a program before others.
func (p Program) important() bool { return rank(p.Level) > 0 || p.Test || p.Disputed }

// importantPrograms returns at most a number of programs, and the number of those that are left out. It prefers the important ones.
func importantPrograms(all []Program, most int) (kept []Program, left int) {
	plain := most
	for _, p := range all {
		if p.important() {
			plain--
		}
	}
	for _, p := range all {
		if !p.important() {
			plain--
		}
		if p.important() || plain >= 0 {
			kept = append(kept, p)
		}
	}
	kept, _ = firstOf(kept, most)
	return kept, len(all) - len(kept)
}

// scaleCommits leaves out files and lines. The commits share the lines, so that a large one leaves some to the others.
func (v *View) scaleCommits(scale int) {
	files, lines := mostFiles>>scale, mostLines>>scale
	for i := range v.Commits {
		c := &v.Commits[i]
		share := max(1, len(v.Commits)-i)
		var missing int
		c.Body, _ = firstOf(c.Body, mostBody>>scale)
		c.Files, missing = firstOf(c.Files, 2*files/(share+1))
		files -= len(c.Files)
		left, cut := max(0, 2*lines/(share+1)), 0
		for j := range c.Files {
			f := &c.Files[j]
			shown := min(len(f.Lines), left)
			cut, left, lines = cut+len(f.Lines)-shown, left-shown, lines-shown
			f.Lines = append([]Line{}, f.Lines[:shown]...)
		}
		if missing > 0 || cut > 0 {
			c.LeftOut = Text(fmt.Sprintf("%s and %s are left out here", words.Count(missing, "file"), words.Count(cut, "line")))
		}
	}
}

// scaleAxis leaves out marks, so that the others are spread evenly. Marks that ask for a look stay.
func (v *View) scaleAxis(scale int) {
	most := max(2, mostMarks>>scale)
	lanes := append([]Lane{}, v.Axis.Lanes...)
	for i := range lanes {
		marks := []Mark{}
		step := max(1, (len(lanes[i].Marks)+most-1)/most)
		for j, m := range lanes[i].Marks {
			if j%step == 0 || rank(m.Level) > 0 && len(marks) < most {
				marks = append(marks, m)
			}
		}
		lanes[i].Marks = marks[:min(len(marks), 2*most)]
	}
	v.Axis.Lanes = lanes
}

// shorten cuts all texts.
func (v *View) shorten(most int) {
	v.Verdict, v.Run.Command = cut(v.Verdict, 4*most), cut(v.Run.Command, 8*most)
	for _, t := range []*Text{&v.Run.Session, &v.Run.Status, &v.Run.Branch} {
		*t = cut(*t, most)
	}
	v.Run.Facts = append([]Fact{}, v.Run.Facts...)
	for i := range v.Run.Facts {
		v.Run.Facts[i].Value = cut(v.Run.Facts[i].Value, 4*most)
	}
	v.Unseen, v.Always, v.Asked = cutAll(v.Unseen, mostUnseen, 2*most), cutAll(v.Always, mostUnseen, 2*most), cutAll(v.Asked, mostDetails, most)
	v.Output = cutAll(v.Output, shownOutput, most)
	for i := range v.First {
		f := &v.First[i]
		f.Text, f.Detail = cut(f.Text, most), cutAll(f.Detail, mostDetails, most)
	}
	v.Answers = append([]Answer{}, v.Answers...)
	for i := range v.Answers {
		a := &v.Answers[i]
		a.Text, a.Detail = cut(a.Text, most/2), cutAll(a.Detail, 4, most/3)
	}
	for i := range v.Programs {
		v.Programs[i].Command, v.Programs[i].Result = cut(v.Programs[i].Command, most), cut(v.Programs[i].Result, most/2)
	}
	for i := range v.Hosts {
		v.Hosts[i].Name, v.Hosts[i].Result = cut(v.Hosts[i].Name, most), cut(v.Hosts[i].Result, most/2)
	}
	for i := range v.Events {
		v.Events[i].Kind, v.Events[i].Text = cut(v.Events[i].Kind, 40), cut(v.Events[i].Text, most)
	}
	for i := range v.Axis.Lanes {
		for j := range v.Axis.Lanes[i].Marks {
			v.Axis.Lanes[i].Marks[j].Text = cut(v.Axis.Lanes[i].Marks[j].Text, most/4)
		}
	}
	v.shortenCommits(most)
}

func (v *View) shortenCommits(most int) {
	for i := range v.Commits {
		c := &v.Commits[i]
		c.Subject, c.State, c.Body = cut(c.Subject, most), cut(c.State, most), cutAll(c.Body, mostBody, most)
		for j := range c.Files {
			f := &c.Files[j]
			f.Path = cut(f.Path, most)
			for k := range f.Lines {
				f.Lines[k].Text = cut(f.Lines[k].Text, most)
			}
		}
	}
}

// cut returns a text that is shortened to at most that many bytes, with a sign at its end if something was cut.
func cut(t Text, most int) Text {
	if len(t) <= most {
		return t
	}
	most = max(1, most)
	for most > 1 && !utf8.RuneStart(t[most]) {
		most--
	}
	return t[:most] + "…"
}

// cutAll returns the first texts of a list, each with at most that many bytes, and how many are missing.
func cutAll(all []Text, most, bytes int) (short []Text) {
	for _, t := range all[:min(len(all), most)] {
		short = append(short, cut(t, bytes))
	}
	if n := len(all) - most; n > 0 {
		short = append(short, Text(fmt.Sprintf("and %d more", n)))
	}
	return short
}
