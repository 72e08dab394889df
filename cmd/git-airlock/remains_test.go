package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/git-airlock/git-airlock/promote/record"
)

// remembered is an airlock that a script has started, with everything that must be gone after clear.
type remembered struct {
	id, uid, workspace string
	key                string // the key of its container, empty if there is none: another repository can have an airlock with the same id
	processes          []process
	cgroups            []string
}

// process identifies a process, as opposed to a later one with the same pid.
type process struct {
	PID   int    `json:"pid"`
	Start string `json:"start"`
}

func (p process) alive() bool { return p.PID > 0 && startTime(p.PID) == p.Start }

// startTime returns field 22 of proc_pid_stat(5), counted after the name, which may contain any text.
func startTime(pid int) string {
	stat := readOr("/proc/"+strconv.Itoa(pid)+"/stat", "")
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(fields) < 20 || fields[0] == "Z" {
		return "gone"
	}
	return fields[19]
}

// remember records the airlock here, and sets the variables ID, WS, AGENTUID, BASE, BRANCH and DAEMON.
func cmdRemember(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 0, "remember")
	d := statusDocument(ts)
	r := remembered{id: field(d, "id"), uid: field(d, "uid"), workspace: field(d, "workspace")}
	daemon, _ := strconv.Atoi(field(d, "daemon.pid"))
	var prison struct {
		Keeper, Init process
		Cgroups      []string
		Key          string
	}
	file := "state.json"
	if field(d, "backend") == "docker" {
		file = "container.json"
	}
	state := filepath.Join(commonDir(ts), "airlock", r.id, "prison", file)
	if content, err := os.ReadFile(state); err == nil {
		ts.Check(json.Unmarshal(content, &prison))
	}
	if r.cgroups, r.key = prison.Cgroups, prison.Key; r.key == "" && file == "container.json" {
		ts.Fatalf("no key in %s", state)
	}
	r.processes = []process{prison.Keeper, prison.Init, {daemon, startTime(daemon)}}
	worldOf(ts).airlocks = append(worldOf(ts).airlocks, r)
	for name, value := range map[string]string{"ID": r.id, "WS": r.workspace, "AGENTUID": r.uid, "BASE": field(d, "base"),
		"BRANCH": field(d, "branch"), "DAEMON": strconv.Itoa(daemon)} {
		ts.Setenv(name, value)
	}
}

// topOf returns the top of the work tree, the nearest folder above with a .git.
func topOf(ts *testscript.TestScript) string {
	dir := ts.MkAbs(".")
	for dir != "/" {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	ts.Fatalf("in no repository")
	return ""
}

// commonDir returns the repository's common git directory.
func commonDir(ts *testscript.TestScript) string {
	return strings.TrimSuffix(gitOutput(ts, "", "rev-parse", "--path-format=absolute", "--git-common-dir"), "\n")
}

// excludeOf returns the content of the user's exclude file.
func excludeOf(ts *testscript.TestScript) string {
	return readOr(filepath.Join(commonDir(ts), "info", "exclude"), "missing")
}

// noairlock checks that no trace of an airlock is left here, except landed commits.
func cmdNoAirlock(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 0, "noairlock")
	top := topOf(ts)
	if left := traces(ts, top); len(left) > 0 {
		ts.Fatalf("left behind: %s", strings.Join(left, "\n"))
	}
	if wrong := mismatch(statusDocument(ts), []string{"state", "none", "version", "1"}); wrong != "" {
		ts.Fatalf("status: %s", wrong)
	}
}

var workspaceName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\.[a-z]+-[0-9a-f]{4}$`) })

func traces(ts *testscript.TestScript, top string) (found []string) {
	add := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	state := filepath.Join(commonDir(ts), "airlock")
	if _, err := os.Lstat(state); err == nil {
		add("%s", state)
	}
	entries, err := os.ReadDir(top)
	ts.Check(err)
	for _, e := range entries {
		if workspaceName().MatchString(e.Name()) {
			add("workspace %s", e.Name())
		}
	}
	if before, started := worldOf(ts).excludes[commonDir(ts)]; started && excludeOf(ts) != before {
		add("info/exclude is now %q", excludeOf(ts))
	}
	ts.Check(ts.Exec("git", "for-each-ref", "refs/airlock"))
	for ref := range strings.Lines(ts.ReadFile("stdout")) {
		if !strings.Contains(ref, record.RefPrefix) { // records of runs stay
			add("ref %s", ref)
		}
	}
	ts.Check(ts.Exec("git", "status", "--porcelain", "--ignored", "--", ":/.*-????"))
	if status := ts.ReadFile("stdout"); status != "" {
		add("git status: %s", status)
	}
	for _, r := range worldOf(ts).airlocks {
		if boxes, others := onEngine(ts, r); len(boxes)+others > 0 {
			add("%d containers and %d volumes and networks of airlock %s", len(boxes), others, r.id)
		}
		for _, dir := range r.cgroups {
			if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
				add("cgroup %s", dir)
			}
		}
	}
	return append(found, processesAndMounts(ts, top, state)...)
}

// processesAndMounts searches /proc for processes of phantoms, and for processes and mounts that use the repository's host state or a
// workspace. Short-lived processes, such as another script's child, get time to end, and so do those of the airlocks: a process releases its
// locks, by which others notice its end, a moment before it has ended.
func processesAndMounts(ts *testscript.TestScript, top, state string) (found []string) {
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		found = nil
		if strings.Contains(readOr("/proc/self/mounts", ""), top) {
			found = append(found, "a mount below "+top)
		}
		for _, r := range worldOf(ts).airlocks {
			for _, p := range r.processes {
				if p.alive() {
					found = append(found, fmt.Sprintf("process %d of airlock %s", p.PID, r.id))
				}
			}
		}
		dirs, err := filepath.Glob("/proc/[0-9]*")
		ts.Check(err)
		for _, dir := range dirs {
			if why := holds(ts, dir, top, state); why != "" {
				stat, groups := readOr(dir+"/stat", ""), readOr(dir+"/cgroup", "")
				found = append(found, fmt.Sprintf("%s (%q): %s: %s %s", dir, readOr(dir+"/cmdline", ""), why, stat, groups))
			}
		}
		if len(found) == 0 || time.Now().After(end) {
			return found
		}
	}
}

func holds(ts *testscript.TestScript, dir, top, state string) string {
	status := readOr(dir+"/status", "")
	if strings.Contains(status, "\nState:\tZ") && strings.Contains(status, "\nPPid:\t1\n") {
		return "" // dead, and none of our processes reaps it
	}
	for _, r := range worldOf(ts).airlocks {
		if strings.Contains(status, "\nUid:\t"+r.uid+"\t") || strings.Contains(status, "\nGid:\t"+r.uid+"\t") { // init has the gid only
			return "runs as " + r.uid
		}
	}
	links, _ := filepath.Glob(dir + "/fd/*")
	for _, link := range append(links, dir+"/cwd", dir+"/root", dir+"/exe") {
		target, _ := os.Readlink(link)
		rest, below := strings.CutPrefix(target, top+"/")
		first, _, _ := strings.Cut(rest, "/")
		if strings.HasPrefix(target, state) || below && workspaceName().MatchString(first) {
			return "has " + target
		}
	}
	if strings.Contains(readOr(dir+"/mountinfo", ""), top) {
		return "mounts something below " + top
	}
	return ""
}

// killprison kills the last started prison from outside.
func cmdKillPrison(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 0, "killprison")
	airlocks := worldOf(ts).airlocks
	last := airlocks[len(airlocks)-1]
	if last.key != "" {
		killContainer(ts, last)
		return
	}
	keeper := last.processes[0]
	if !keeper.alive() {
		ts.Fatalf("it is dead")
	}
	ts.Check(syscall.Kill(keeper.PID, syscall.SIGKILL))
	cmdDead(ts, false, []string{strconv.Itoa(keeper.PID)})
}

// ended waits until all processes of the last started airlock have ended.
func cmdEnded(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 0, "ended")
	last := worldOf(ts).airlocks[len(worldOf(ts).airlocks)-1]
	for begun := time.Now(); ; rest(begun) {
		running := slices.ContainsFunc(last.processes, process.alive)
		boxes, _ := onEngine(ts, last)
		for _, b := range boxes {
			running = running || b.State == "running"
		}
		if !running {
			return
		}
		if time.Since(begun) > patience {
			ts.Fatalf("still running: %v %v", last.processes, boxes)
		}
	}
}

// dead PID waits until a process has ended. A zombie counts as ended.
func cmdDead(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 1, "dead PID")
	pid, err := strconv.Atoi(args[0])
	ts.Check(err)
	for end := time.Now().Add(patience); startTime(pid) != "gone"; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			ts.Fatalf("process %d lives", pid)
		}
	}
}

// plain FILE checks that a text has no hidden characters and no control sequences.
func cmdPlain(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 1, "plain FILE")
	text := ts.ReadFile(args[0])
	if text == "" {
		ts.Fatalf("%s is empty", args[0])
	}
	for i, r := range text {
		if r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) && r != '\n' && r != '\t' {
			ts.Fatalf("%U at %d of %q", r, i, text)
		}
	}
}

// keys FILE PATH... checks that a JSON document has these fields. Its top-level fields must be exactly the named ones, in their
// order.
func cmdKeys(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) < 2, "keys FILE PATH...")
	text := ts.ReadFile(args[0])
	var document any
	ts.Check(json.Unmarshal([]byte(text), &document))
	for _, path := range args[1:] {
		parent, last := document, path
		if i := strings.LastIndex(path, "."); i >= 0 {
			last = path[i+1:]
			ts.Check(json.Unmarshal([]byte(field(document, path[:i])), &parent))
		}
		if object, ok := parent.(map[string]any); !ok {
			ts.Fatalf("%s: its parent is not an object", path)
		} else if _, ok := object[last]; !ok {
			ts.Fatalf("no %s", path)
		}
	}
}
