package records

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/promote/record/replay"
	"github.com/git-airlock/git-airlock/words"
)

func compareCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "compare", Usage: "compare two runs by their records",
		UsageText: "git airlock compare RUN RUN [--exit-code] [--json]",
		Description: "Prints what differs: the result, the tree of the last commit, the commits, the changes by patch-id, the programs and hosts,\n" +
			"the time, and the resources. Two commits with the same change have the same patch-id, whatever they are built on. The interdiff\n" +
			"follows: what the second run landed that the first one did not. The commits of the first run are made again on the commit\n" +
			"before the second one for it, see git-airlock-replay(1).\n\n" +
			"With --exit-code, the exit status is 1 if trees or changes differ. Times, programs and hosts do not count.",
		Flags:  []cli.Flag{&cli.BoolFlag{Name: "exit-code", Usage: "end with status 1 if the runs have other changes"}, cmdline.JSONFlag},
		Action: inAny(compareRuns),
	}, cmdline.Takes{Least: 2, Most: 2})
}

// side is one of two runs in version 1 of compare --json. Its texts are escaped.
type side struct {
	Name     string        `json:"name"`
	Status   record.Status `json:"status"`
	Seconds  float64       `json:"seconds"`
	Tree     gitops.OID    `json:"tree"` // of the last commit; empty without one
	Commits  int           `json:"commits"`
	Patches  []string      `json:"patches"` // patch-ids of the changes, in order
	Programs []string      `json:"programs"`
	Hosts    []string      `json:"hosts"`
	CPU      int64         `json:"cpu_ms"` // -1 if it was not measured
	Memory   int64         `json:"memory"` // the most, in bytes; -1 if it was not measured
	run      record.Run
}

func sideOf(c *cli.Context, s *session.Session, name string) (side, error) {
	e, run, err := recordOf(c.Context, s, name)
	if err != nil {
		return side{}, err
	}
	m := run.Manifest
	d := side{run: run, Name: e.Name(), Status: record.Status(gitops.Text(m.Status).String()), Seconds: m.Ended.Sub(m.Started).Round(time.Millisecond).Seconds(),
		CPU: -1, Memory: -1}
	commits, _ := run.Commits() // what cannot be read counts as missing, and inspect --verify finds it
	d.Commits = len(commits)
	if len(commits) > 0 {
		d.Tree = commits[len(commits)-1].Tree
	}
	if patch, err := run.Text(record.ChangesName); err == nil {
		if d.Patches, err = s.Repo.PatchIDsIn(c.Context, patch); err != nil {
			return d, err
		}
	}
	execs, _ := run.Execs()
	programs, hosts := map[string]bool{}, map[string]bool{}
	for _, x := range execs {
		programs[gitops.Text(x.Exe).String()] = true
	}
	egress, _ := run.Egress()
	for _, x := range egress {
		if x.Kind == control.KindFlow || x.Kind == control.KindRequest {
			hosts[gitops.Text(x.Name).String()] = true
		}
	}
	delete(programs, "")
	delete(hosts, "")
	d.Programs, d.Hosts = slices.Sorted(maps.Keys(programs)), slices.Sorted(maps.Keys(hosts))
	samples, _ := run.Samples()
	for _, x := range samples {
		d.CPU, d.Memory = max(d.CPU, x.CPU), max(d.Memory, x.Memory)
	}
	return d, nil
}

// comparison is version 1 of compare --json.
type comparison struct {
	Version   int    `json:"version"`
	Same      bool   `json:"same"` // the trees and the changes
	A         side   `json:"a"`
	B         side   `json:"b"`
	Interdiff string `json:"interdiff"` // escaped, at most a megabyte; empty if the trees are the same
	Missing   string `json:"missing"`   // the reason why the interdiff is missing or cut; empty if it is whole
}

// interdiff adds what the second run landed and the first one did not.
func (d *comparison) interdiff(c *cli.Context, s *session.Session, colour bool) error {
	if d.A.Tree == d.B.Tree {
		return nil
	}
	if s.Dry {
		d.Missing = "a dry run makes no commits"
		return nil
	}
	unlock, err := s.Store.Lock(c.Context) // a workshop belongs to one process
	if err != nil {
		return err
	}
	defer unlock()
	var text bytes.Buffer
	err = replay.Interdiff(c.Context, replay.Request{Repo: s.Repo, Run: d.A.run}, replay.Request{Repo: s.Repo, Run: d.B.run}, &text, colour)
	if d.Interdiff = text.String(); c.Err() != nil {
		return c.Err()
	}
	if err != nil {
		d.Missing = gitops.Text(err.Error()).String()
	}
	return nil
}

func compareRuns(c *cli.Context, s *session.Session) error {
	words := cmdline.Words(c)
	a, err := sideOf(c, s, words[0])
	if err != nil {
		return err
	}
	b, err := sideOf(c, s, words[1])
	if err != nil {
		return err
	}
	d := comparison{Version: ui.DocumentVersion, Same: a.Tree == b.Tree && slices.Equal(a.Patches, b.Patches), A: a, B: b}
	if err := d.interdiff(c, s, !c.Bool(cmdline.JSONFlag.Name) && bool(cmdline.Painted(s))); err != nil {
		return err
	}
	err = cmdline.Print(c, s, true, d, func(out io.Writer, _ ui.Paint) error { return d.print(out) })
	if err == nil && !d.Same && c.Bool("exit-code") {
		return cmdline.Shown(errDifferent)
	}
	return err
}

func (d comparison) print(out io.Writer) error {
	var b strings.Builder
	row := func(what, x, y string) {
		mark := " "
		if x != y {
			mark = "*"
		}
		fmt.Fprintf(&b, "%s %-9s %-40s %s\n", mark, what, x, y)
	}
	row("run", d.A.Name, d.B.Name)
	row("result", string(d.A.Status), string(d.B.Status))
	row("tree", abbreviated(d.A.Tree), abbreviated(d.B.Tree))
	row("commits", fmt.Sprint(d.A.Commits), fmt.Sprint(d.B.Commits))
	row("time", fmt.Sprintf("%.1fs", d.A.Seconds), fmt.Sprintf("%.1fs", d.B.Seconds))
	row("cpu", measured(d.A.CPU, fmt.Sprintf("%.1fs", float64(d.A.CPU)/1000)), measured(d.B.CPU, fmt.Sprintf("%.1fs", float64(d.B.CPU)/1000)))
	row("memory", measured(d.A.Memory, words.Bytes(d.A.Memory)), measured(d.B.Memory, words.Bytes(d.B.Memory)))
	for _, list := range []struct {
		what string
		a, b []string
	}{{"change", d.A.Patches, d.B.Patches}, {"program", d.A.Programs, d.B.Programs}, {"host", d.A.Hosts, d.B.Hosts}} {
		for _, x := range list.a {
			if !slices.Contains(list.b, x) {
				fmt.Fprintf(&b, "- %-9s %.60s\n", list.what, x)
			}
		}
		for _, x := range list.b {
			if !slices.Contains(list.a, x) {
				fmt.Fprintf(&b, "+ %-9s %.60s\n", list.what, x)
			}
		}
	}
	if d.Interdiff != "" {
		fmt.Fprintf(&b, "\n%s", d.Interdiff)
	}
	if d.Missing != "" {
		fmt.Fprintf(&b, "\nno interdiff, or not all of it: %s\n", d.Missing)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// measured returns a text for a value, unless the value is -1.
func measured(value int64, text string) string {
	if value < 0 {
		return "not measured"
	}
	return text
}

func abbreviated(id gitops.OID) string {
	if id == "" {
		return "none"
	}
	return string(id[:12])
}
