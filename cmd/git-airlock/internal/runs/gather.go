package runs

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/passed"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/events"
	promoted "github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/policy"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/promote/record/report"
	"github.com/git-airlock/git-airlock/promote/record/store"
	"github.com/git-airlock/git-airlock/words"
)

// gathering collects the parts of a record from what is on disk.
type gathering struct {
	Keeper
	opening
	slot   int
	result Result
	values passed.Values // of variables
	files  map[string][]byte
	about  map[string]record.File
	absent map[string]string

	visibility []string
	reasons    []string
	statuses   []record.Status
	landed     []promoted.Pair
	pending    []promoted.Pair
	execs      []record.Exec // the content of the file with the programs, unless it was cut
	spooled    map[string]func() spooled
	ahead      store.Ahead
}

// Most reads the number of bytes that a record may have.
func Most(c gitops.Config) (int64, error) {
	return policy.ReadSize(c, "airlock.runs.maxBytes", record.DefaultMax)
}

func (g *gathering) gather(ctx context.Context) (record.Run, error) {
	m := &g.Manifest
	m.Ended, m.Exit, m.Recovered = g.result.At, g.result.Exit, g.result.Recovered
	if m.Exit != nil && *m.Exit > 128 && *m.Exit < 128+64 {
		m.Signal = record.Signal(unix.SignalName(syscall.Signal(*m.Exit - 128)))
	}
	most, err := Most(g.Prisons.Config.With(g.Record.Settings))
	if err != nil {
		return record.Run{}, err
	}
	g.readOutputs()
	for _, part := range []func(context.Context) error{g.after, g.commits, g.changes, g.network, g.events, g.programs, g.output, g.policies} {
		if err := part(ctx); err != nil {
			return record.Run{}, err
		}
	}
	g.resources()
	g.addResults()
	size := g.limit(most)
	m.Status, m.Reasons = record.Worst(g.statuses...), g.reasons
	m.Visibility, m.Files, m.Absent = g.visibility, g.about, g.absent
	if err := g.report(most - size); err != nil {
		return record.Run{}, err
	}
	return record.New(*m, g.files)
}

// report adds the report as a page and as a document, if there is room for them.
func (g *gathering) report(room int64) error {
	run := record.Run{Ref: record.Ref(g.Manifest.Session, g.Manifest.Run), Manifest: g.Manifest, Files: g.files}
	if g.files[record.ExecName] == nil {
		g.execs = nil // left out by the limit
	}
	view := report.Making(run, g.execs)
	var page, document []byte
	err := gitops.Together(
		func() (err error) { page, err = view.HTML(); return err },
		func() (err error) { document, err = view.JSON(); return err })
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{record.ReportHTMLName: page, record.ReportJSONName: document} {
		if int64(len(page)+len(document)) > room {
			g.absent[name] = "the record has no room for it (airlock.runs.maxBytes); git airlock report makes it"
			continue
		}
		g.files[name] = content
	}
	return nil
}

// put adds a file. Of a file that is too large, the beginning is kept up to the end of a line.
func (g *gathering) put(name string, content []byte, about record.File) {
	if cut := len(content) - record.MaxFile; cut > 0 {
		end := bytes.LastIndexByte(content[:record.MaxFile], '\n') + 1
		about.Cut, content = about.Cut+int64(len(content)-end), content[:end]
		about.Note = strings.TrimPrefix(about.Note+"; the end is left out", "; ")
	}
	g.files[name], g.about[name] = content, about
	g.ahead.Add(name, content)
}

// limit leaves out files until the record has at most that many bytes, the largest ones first. It returns the bytes of the others.
func (g *gathering) limit(most int64) int64 {
	for {
		var total int64
		largest := ""
		for name, content := range g.files {
			total += int64(len(content))
			if largest == "" || len(content) > len(g.files[largest]) || len(content) == len(g.files[largest]) && name < largest {
				largest = name
			}
		}
		if total <= most || largest == "" {
			return total
		}
		g.absent[largest] = fmt.Sprintf("%d bytes, and the record may have %d (airlock.runs.maxBytes)", len(g.files[largest]), most)
		delete(g.files, largest)
	}
}

// after adds the state after the run.
func (g *gathering) after(ctx context.Context) (err error) {
	m := &g.Manifest
	if m.Outer.After, err = g.Prisons.Repo.Ref(ctx, g.Record.Branch); err != nil {
		return err
	}
	if m.Inner.After, err = g.inner(); err != nil {
		return err
	}
	m.Checkpoints.After, m.Fingerprint.After = g.Checkpoint(ctx), g.fingerprint()
	outcome, err := promoted.ReadOutcome(g.dir())
	for _, h := range outcome.Holds {
		m.Held = append(m.Held, record.Hold{Reason: string(h.Reason), Message: h.Message, Paths: h.Paths})
	}
	var unseen error
	if m.Waiting, unseen = g.Waiting(ctx); unseen != nil {
		g.visibility = append(g.visibility, "commits on other branches of the workspace could not be counted: "+gitops.Text(words.OneLine(unseen)).String())
	}
	g.visibility = append(g.visibility, record.UnseenReads, record.UnseenKernel, record.UnseenContents, record.UnseenSecrets)
	if m.Fingerprint.After.Cut {
		g.visibility = append(g.visibility, fmt.Sprintf("only the first %d of your files are compared", maxFingerprint))
	}
	if g.result.Recovered {
		g.visibility = append(g.visibility, "the processes that watched the run died, so its end is that of the last sign of it")
	}
	return err
}

// until returns the moment after which events do not belong to the run any more.
func (g *gathering) until() time.Time {
	if g.result.Recovered {
		return g.result.At.Add(time.Minute)
	}
	return g.Now().UTC()
}

// events adds the part of the event log.
func (g *gathering) events(ctx context.Context) error {
	events.Retry(g.dir())
	from := g.Manifest.Started.Truncate(time.Millisecond) // as the times of events are
	all, err := g.Events(ctx, from)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(e record.Event) bool { return e.Time.Before(from) || e.Time.After(g.until()) })
	g.others(all)
	for i := range all {
		all[i].Run, all[i].Text = g.Manifest.Run, g.values.Text(all[i].Text)
		for key, text := range all[i].Data {
			all[i].Data[key] = g.values.Text(text)
		}
		switch e := all[i]; {
		case e.Kind == record.EventLimit:
			g.hit(e.Data["reason"])
			if e.Data["reason"] == string(promoted.WorkspaceFull) { // the text names the limit, or the full disk
				g.because(e.Text)
			}
		case e.Kind == record.EventIsolation && e.Level == record.Failure:
			g.found(record.IsolationBroken, e.Text)
		}
	}
	content, err := record.EncodeLines(all)
	g.put(record.EventsName, content, record.File{})
	return err
}

// others adds to the visibility which other runs there were, from the events since the beginning of this one.
func (g *gathering) others(events []record.Event) {
	own := runBegan + g.Manifest.Command(shownCommand)
	others := slices.Clone(g.Others)
	for _, e := range events {
		switch {
		case e.Kind != record.EventRun || e.Session != g.Manifest.Session:
		case e.Text == own:
			own = "" // a second one is of another run
		default:
			others = append(others, strings.TrimPrefix(e.Text, runBegan))
		}
	}
	if len(others) == 0 {
		return
	}
	g.visibility = append(g.visibility, "other commands ran at the same time, and their programs, hosts and commits can be in this record too: "+
		g.values.Text(words.List(others, 5)))
}

func (g *gathering) hit(limit string) {
	name := cmp.Or(map[string]string{"workspace-full": "workspace", "disk-full": "disk"}[limit], limit)
	if !slices.Contains(g.Manifest.LimitsHit, name) {
		g.Manifest.LimitsHit = append(g.Manifest.LimitsHit, name)
	}
}

// found adds a result of the run to the manifest, with the reason.
func (g *gathering) found(s record.Status, reason string) {
	g.statuses = append(g.statuses, s)
	g.because(reason)
}

func (g *gathering) because(reason string) {
	if reason != "" && !slices.Contains(g.reasons, reason) {
		g.reasons = append(g.reasons, reason)
	}
}

// policies adds the ids of the policies in force, and whether a person had to let commits land.
func (g *gathering) policies(ctx context.Context) error {
	g.Manifest.Policy = []string{"builtin"}
	if mode, err := promote.ReadReview(g.Prisons.Config.With(g.Record.Settings)); err == nil {
		g.Manifest.Review = string(mode)
	}
	team, err := g.Prisons.Repo.Ref(ctx, "refs/airlock/policy")
	if team != "" {
		g.Manifest.Policy = append(g.Manifest.Policy, "team:"+string(team))
	}
	if g.Prisons.Config.String("airlock.policyFile", "") != "" {
		g.Manifest.Policy = append(g.Manifest.Policy, "user")
	}
	return err
}

// addResults adds the results that follow from the exit status, the holds and the limits.
func (g *gathering) addResults() {
	m := &g.Manifest
	switch {
	case g.result.Failure != "":
		g.found(record.Failed, "the command could not be started: "+gitops.Text(g.values.Text(g.result.Failure)).String())
	case g.result.Stopped:
		g.found(record.Stopped, "the command was stopped with its prison")
	case g.result.Key != "":
		g.found(record.Stopped, fmt.Sprintf("%s at its terminal ended the command", g.result.Key))
	case m.Exit == nil:
		g.found(record.Stopped, "the end of the command was not seen")
	case *m.Exit != 0 && !g.result.Late && !g.result.Spent:
		g.found(record.Failed, fmt.Sprintf("the command ended with exit status %d", *m.Exit))
	}
	if g.result.OutputLost != "" {
		g.because("the rest of its output was lost: " + gitops.Text(g.values.Text(g.result.OutputLost)).String())
	}
	if g.result.Late {
		g.hit("time")
		g.found(record.Timeout, "the time limit ended the command")
	}
	if g.result.Spent {
		g.hit("requests")
	}
	if len(g.pending) > 0 {
		g.found(record.CompletedHeld, fmt.Sprintf("commits wait: %d", len(g.pending)))
	}
	if slices.ContainsFunc(m.LimitsHit, func(name string) bool { return slices.Contains([]string{"memory", "workspace", "requests"}, name) }) {
		g.found(record.Limited, "a limit ended processes: "+strings.Join(m.LimitsHit, ", "))
	}
}
