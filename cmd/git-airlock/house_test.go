package main_test

import (
	"bytes"
	"cmp"
	"go/ast"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is the path of this module.
const module = "github.com/git-airlock/git-airlock"

// The internal packages of the command.
const (
	command         = "cmd/git-airlock"
	uiRoom          = command + "/internal/ui"
	manualRoom      = command + "/internal/manual"
	sessionRoom     = command + "/internal/session"
	prisonsRoom     = command + "/internal/prisons"
	environmentRoom = command + "/internal/environment"
	networkRoom     = command + "/internal/network"
	agentsRoom      = command + "/internal/agents"
	cmdlineRoom     = command + "/internal/cmdline"
	requestRoom     = command + "/internal/request"
	commandsRoom    = command + "/internal/command"
	checkpointsRoom = command + "/internal/checkpoints"
	programsRoom    = command + "/internal/programs"
	runsRoom        = command + "/internal/runs"
	pushcheckRoom   = command + "/internal/pushcheck"
	inboundRoom     = command + "/internal/inbound"
	checkingRoom    = command + "/internal/checking"
	settingsRoom    = command + "/internal/settings"
	worktreesRoom   = command + "/internal/worktrees"
	lifecycleRoom   = commandsRoom + "/lifecycle"
	launchedRoom    = command + "/internal/launched"
	terminalRoom    = command + "/internal/terminal"
)

// rooms is the import table. It maps each folder to the folders of this module that it may import. A folder without a row uses the row
// of the nearest folder above it.
var rooms = map[string][]string{
	command:         {agentsRoom, lifecycleRoom, commandsRoom + "/landing", commandsRoom + "/net", commandsRoom + "/prepare", commandsRoom + "/proof", commandsRoom + "/records", commandsRoom + "/review", cmdlineRoom, pushcheckRoom, uiRoom, manualRoom, sessionRoom, prisonsRoom, environmentRoom, networkRoom, "gitops", "prison/docker/inside", "prison/recipe", "promote", "promote/record/store", "snapshot"},
	cmdlineRoom:     {checkpointsRoom, launchedRoom, runsRoom, uiRoom, manualRoom, sessionRoom, prisonsRoom, environmentRoom, networkRoom, "gitops", "identity", "snapshot", "prison", "prison/egress/control", "prison/recipe", "promote", "promote/record", "promote/record/store"},
	requestRoom:     {agentsRoom, inboundRoom, uiRoom, sessionRoom, prisonsRoom, environmentRoom, networkRoom, "gitops", "prison", "prison/docker/image", "prison/recipe", "promote"},
	uiRoom:          {"gitops"},
	manualRoom:      {uiRoom},
	settingsRoom:    {checkpointsRoom, runsRoom, "gitops", "promote"},
	worktreesRoom:   {prisonsRoom, environmentRoom, "gitops", "prison", "promote"},
	sessionRoom:     {agentsRoom, checkingRoom, inboundRoom, settingsRoom, worktreesRoom, prisonsRoom, environmentRoom, networkRoom, "gitops", "gitops/ignore", "gitops/inner", "gitops/land", "gitops/quarantine", "identity", "snapshot", "prison", "prison/egress/control", "prison/egress/ledger", "prison/recipe", "promote"},
	prisonsRoom:     {environmentRoom, networkRoom, "gitops", "gitops/inner", "gitops/quarantine", "identity", "snapshot", "prison", "promote"},
	inboundRoom:     {prisonsRoom, environmentRoom, "gitops", "gitops/ignore", "gitops/inner", "gitops/quarantine", "snapshot", "promote"},
	checkpointsRoom: {prisonsRoom, environmentRoom, "gitops", "gitops/killpoint", "gitops/ticks", "snapshot", "prison", "promote", "promote/record"},
	checkingRoom:    {prisonsRoom, environmentRoom, "gitops", "identity", "prison", "promote", "snapshot"},
	programsRoom:    {prisonsRoom, environmentRoom, "gitops", "prison", "promote", "promote/record"},
	runsRoom:        {launchedRoom, prisonsRoom, environmentRoom, "gitops", "gitops/killpoint", "gitops/ticks", "identity", "prison", "prison/egress/control", "prison/egress/ledger", "promote", "promote/record", "promote/record/store", "snapshot"},
	pushcheckRoom:   {environmentRoom, sessionRoom, "gitops", "identity", "promote"},
	environmentRoom: {"gitops", "gitops/inner", "gitops/quarantine", "prison", "prison/docker/image", "prison/recipe"},
	networkRoom:     {"gitops", "gitops/ticks", "prison", "prison/egress/control", "prison/egress/ledger", "promote"},
	// The rooms of commands import no other room of commands.
	lifecycleRoom:             {cmdlineRoom, launchedRoom, terminalRoom, runsRoom, requestRoom, uiRoom, sessionRoom, environmentRoom, "gitops", "prison", "prison/recipe", "promote", "promote/record"},
	commandsRoom + "/landing": {checkingRoom, cmdlineRoom, pushcheckRoom, inboundRoom, requestRoom, uiRoom, manualRoom, sessionRoom, environmentRoom, "gitops", "gitops/land", "identity", "snapshot", "promote"},
	commandsRoom + "/net":     {cmdlineRoom, uiRoom, sessionRoom, environmentRoom, networkRoom, "gitops", "prison", "prison/egress/control", "prison/egress/ledger", "promote"},
	commandsRoom + "/proof":   {cmdlineRoom, uiRoom, sessionRoom, environmentRoom, "gitops", "identity", "promote", "promote/record"},
	commandsRoom + "/records": {checkpointsRoom, programsRoom, runsRoom, cmdlineRoom, uiRoom, sessionRoom, environmentRoom, "gitops", "prison", "prison/egress/control", "promote", "identity", "promote/record", "promote/record/replay", "promote/record/store", "snapshot"},
	commandsRoom + "/review":  {cmdlineRoom, inboundRoom, pushcheckRoom, uiRoom, sessionRoom, environmentRoom, "gitops", "gitops/userhook", "promote"},
	commandsRoom + "/prepare": {agentsRoom, cmdlineRoom, inboundRoom, requestRoom, uiRoom, sessionRoom, prisonsRoom, environmentRoom, "gitops", "gitops/ignore", "snapshot", "prison", "prison/recipe", "promote"},

	agentsRoom:   {"gitops", "prison", "prison/recipe"},
	launchedRoom: {"gitops", "prison", "promote"},
	terminalRoom: {"gitops"},
	"gitops":     nil,
	"words":      nil, // every folder may import it
	"identity":   {"gitops"},
	"snapshot":   {"gitops", "gitops/ignore", "gitops/inner", "gitops/quarantine", "identity"},
	"prison": {"gitops/procstat", "gitops/ticks", "prison/egress/control", "prison/egress/ledger", "prison/native/wire", "prison/native/walls", "prison/native/usernet", "prison/native/inside", "prison/native/inotify",
		"prison/docker/dialect", "prison/docker/image", "prison/docker/inside", "prison/watch/containers"},
	"promote": {"gitops", "gitops/ignore", "gitops/inner", "gitops/land", "gitops/quarantine", "identity", "gitops/bounded", "gitops/procstat", "gitops/ticks", "promote/policy/pathname", "promote/record"},

	"gitops/bounded":    nil,
	"gitops/killpoint":  nil,
	"gitops/procstat":   nil,
	"gitops/ticks":      nil,
	"gitops/land":       {"gitops", "gitops/killpoint", "gitops/procstat", "gitops/quarantine"},
	"gitops/ignore":     {"gitops"},
	"gitops/inner":      {"gitops", "gitops/ignore", "gitops/ticks"},
	"gitops/packing":    {"gitops"},
	"gitops/quarantine": {"gitops", "gitops/ignore", "gitops/inner", "gitops/packing"},
	"gitops/userhook":   {"gitops"},
	"prison/recipe":     {"prison", "gitops/bounded"}, // it parses files of commits

	"promote/policy/pathname": {"gitops"},
	"promote/record/store":    {"gitops", "gitops/killpoint", "gitops/packing", "promote/record"},
	"promote/record/replay":   {"gitops", "gitops/killpoint", "gitops/inner", "gitops/quarantine", "promote/record", "promote/record/store"},
	"promote/record":          {"gitops", "gitops/bounded", "prison/egress/control"}, // the form of records, also for packages outside of promote

	"prison/egress/control":   {"prison"},
	"prison/egress/ledger":    {"gitops/ticks", "prison", "prison/egress/control"},
	"prison/native/wire":      {"prison"},
	"prison/native/walls":     {"prison", "prison/native/wire"},
	"prison/native/usernet":   {"gitops/ticks", "prison", "prison/egress/control", "prison/egress/ledger", "prison/native/wire", "prison/native/walls"},
	"prison/native/inotify":   nil,
	"prison/native/inside":    {"gitops/procstat", "prison", "prison/native/inotify", "prison/native/wire", "prison/native/walls", "prison/native/usernet"},
	"prison/docker/dialect":   {"prison"},
	"prison/docker/image":     {"prison", "prison/docker/dialect"},
	"prison/watch/containers": {"prison", "prison/native/wire", "prison/native/walls"},
	"prison/docker/inside":    {"gitops/ticks", "prison", "prison/docker/dialect", "prison/docker/image", "prison/hosttree", "prison/watch/containers"},

	"scripts/components": nil, // in no binary
	"scripts/fake-model": nil,
	"scripts/internet":   {"prison"},
	"scripts/netload":    nil,
}

// doors maps each outside thing to the packages that may use it. A name that ends in a slash stands for everything below it.
var doors = map[string][]string{
	"os/exec":                           {"gitops", "gitops/gitopstest", "gitops/land", "prison/egress/credential/secret", "prison/native/walls", "prison/prisontest", "prison/prisontest/internet", "prison/prisontest/internet/registries", "promote/attest", pushcheckRoom, sessionRoom, uiRoom},
	"net":                               {"scripts/fake-model", checkpointsRoom + "/resident", "prison/docker/inside", "prison/egress", "prison/egress/single", "prison/egress/authority", "prison/egress/failure", "prison/egress/hello", "prison/egress/lookup", "prison/egress/upstream", "prison/prisontest", "prison/prisontest/internet", "prison/selftest", "scripts/netload"},
	"net/":                              nil,
	"net/http":                          {"scripts/fake-model", "scripts/netload", "prison/egress", "prison/egress/request", "prison/egress/share", "prison/egress/single", "prison/egress/credential", "prison/egress/upstream", "prison/prisontest/internet", "prison/prisontest/internet/registries"},
	"net/http/httputil":                 {"prison/egress", "scripts/netload", "prison/prisontest/internet"},
	"net/http/httptrace":                {"prison/egress/credential"},
	"net/netip":                         {"prison/egress", "prison/egress/lookup", "prison/egress/prefix", "prison/egress/reverse", "prison/egress/route", "prison/prisontest", "prison/prisontest/internet", "prison/selftest"},
	"net/url":                           {"prison/docker/dialect", "prison/egress/credential", "prison/egress/request", "prison/egress/upstream"},
	"plugin":                            nil,
	"C":                                 nil,
	"github.com/containerd/errdefs":     {"prison/docker/dialect"},
	"golang.org/x/sys/":                 {"gitops", "gitops/busy", "gitops/durable", "gitops/far", "prison/egress", "prison/egress/frames", "prison/egress/route", "prison/hosttree", "prison/native", "prison/native/inside", "prison/native/inotify", "prison/native/usernet", "prison/native/walls", "prison/native/wire", "prison/prisontest", "prison/selftest", "prison/watch", "prison/watch/containers", "prison/watch/execs", "promote", "promote/airlock", "promote/checks", "promote/daemon", "promote/disk", "promote/events", "snapshot/checkpoint/files", uiRoom, runsRoom},
	"golang.org/x/term":                 {cmdlineRoom, lifecycleRoom, uiRoom},
	"github.com/urfave/cli/":            {command, cmdlineRoom, requestRoom, commandsRoom + "/"},
	"github.com/fsnotify/fsnotify":      {"promote/daemon"},
	"github.com/rogpeppe/go-internal/":  nil, // tests only
	"github.com/cpuguy83/go-md2man/":    nil, // comes with urfave/cli
	"github.com/russross/blackfriday/":  nil,
	"github.com/xrash/smetrics":         nil,
	"github.com/go-git/go-git/":         {"gitops/quarantine", "snapshot/checkpoint"},
	"github.com/libgit2/git2go/":        {"gitops/quarantine"},
	"github.com/docker/":                {"prison/docker", "prison/docker/dialect", "prison/docker/image", "prison/docker/inside", "prison/docker/walls"},
	"github.com/distribution/reference": {"prison/docker/image"},
	"github.com/moby/profiles/":         {"prison/docker/walls"},
	"github.com/moby/patternmatcher":    {"prison/recipe"},
	"github.com/moby/patternmatcher/":   {"prison/recipe"},
	"github.com/pelletier/go-toml/":     {"prison/recipe", "promote/policy", "promote/policy/secrets"},
	"github.com/google/licensecheck":    {"scripts/components"},
	"github.com/hiddeco/sshsig":         {"promote/evidence"},
	"golang.org/x/crypto/":              {"promote/evidence"},
	"golang.org/x/net/":                 {"prison/egress", "prison/egress/reverse", "prison/egress/tenants", "prison/egress/upstream", "prison/prisontest/internet"},
	"golang.org/x/text/":                {"promote/policy/pathname", terminalRoom},
	"gvisor.dev/gvisor/":                {"prison/egress", "prison/egress/frames"},
}

// maxLines is the maximum number of lines in a file. A longer file usually has more than one idea.
const maxLines = 500

// room returns the row of the import table for a folder, or an empty string if there is none.
func room(folder string) string {
	for ; folder != "."; folder = path.Dir(folder) {
		if _, ok := rooms[folder]; ok {
			return folder
		}
	}
	return ""
}

func imports(t *testing.T, f source) []string {
	t.Helper()
	var paths []string
	for _, spec := range f.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, p)
	}
	return paths
}

// TestImportTable checks that the imports between folders are those of the import table.
func TestImportTable(t *testing.T) {
	for _, f := range sources(t) {
		from := room(f.folder())
		if from == "" {
			t.Errorf("%s: a folder that the house does not have", f.name)
			continue
		}
		if f.test() {
			continue
		}
		for _, p := range imports(t, f) {
			ours, ok := strings.CutPrefix(p, module+"/")
			if !ok {
				continue
			}
			if to := room(ours); to != from && to != "words" && !slices.Contains(rooms[from], to) {
				t.Errorf("%s imports %s: %s may import %q", f.name, ours, from, rooms[from])
			}
		}
	}
}

// TestDoors checks that only the packages in doors use an outside thing.
func TestDoors(t *testing.T) {
	for _, f := range sources(t) {
		if f.test() {
			continue
		}
		for _, p := range imports(t, f) {
			allowed, known := door(p)
			if known && !slices.ContainsFunc(allowed, func(p string) bool {
				return p == f.folder() || strings.HasSuffix(p, "/") && strings.HasPrefix(f.folder(), p)
			}) {
				t.Errorf("%s imports %s, which belongs to %q", f.name, p, allowed)
			}
			// The first element of a path outside of the standard library is a host name, with a dot.
			first, _, _ := strings.Cut(p, "/")
			if !known && strings.Contains(first, ".") && !strings.HasPrefix(p, module+"/") {
				t.Errorf("%s imports %s, for which there is no door", f.name, p)
			}
		}
	}
}

func door(p string) (allowed []string, known bool) {
	if allowed, known = doors[p]; known {
		return allowed, true
	}
	for key, allowed := range doors {
		if strings.HasSuffix(key, "/") && strings.HasPrefix(p, key) {
			return allowed, true
		}
	}
	return nil, false
}

// TestEnvironmentAndClock checks that the command and its internal packages use the environment and the clock in one file each.
func TestEnvironmentAndClock(t *testing.T) {
	behind := map[string][]string{"os": {"Getenv", "LookupEnv", "Environ", "Setenv"}, "time": {"Now", "Since", "Until"}}
	exempt := map[string]string{uiRoom + "/pager.go Environ": "the pager gets the environment of this process"}
	for _, f := range sources(t) {
		if f.test() || f.name == uiRoom+"/doors.go" || !strings.HasPrefix(f.name, command) {
			continue
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			from, ok := call.X.(*ast.Ident)
			if ok && slices.Contains(behind[from.Name], call.Sel.Name) && exempt[f.name+" "+call.Sel.Name] == "" {
				t.Errorf("%s: %s.%s is behind the door of %s/doors.go", f.name, from.Name, call.Sel.Name, uiRoom)
			}
			return true
		})
	}
}

// TestHintsHaveOneDoor checks that all hints are printed by the function that advice.airlock turns off.
func TestHintsHaveOneDoor(t *testing.T) {
	for _, f := range sources(t) {
		if f.test() || f.name == uiRoom+"/messages.go" {
			continue
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && strings.Contains(text.Value, "hint: ") {
				t.Errorf("%s: %s is a hint that passes by hint()", f.name, text.Value)
			}
			return true
		})
	}
}

// The maximum size of a folder with Go files, without tests. A larger folder usually has more than one idea.
const (
	maxFiles       = 20
	maxFolderLines = 3500
)

// TestFolderSize checks the size of folders.
func TestFolderSize(t *testing.T) {
	files, lines := map[string]int{}, map[string]int{}
	for _, f := range sources(t) {
		if !f.test() {
			lines[f.folder()] += f.lines
			files[f.folder()]++
		}
	}
	for folder, n := range files {
		if n > maxFiles || lines[folder] > maxFolderLines {
			t.Errorf("%s has %d files and %d lines; at most %d and %d", folder, n, lines[folder], maxFiles, maxFolderLines)
		}
	}
}

// TestOneFilePerCommand checks that each command is in the file of its name. Two that nobody types are with their topic.
func TestOneFilePerCommand(t *testing.T) {
	topics := map[string]string{"help": "manual", "completion": "complete"}
	found := 0
	for _, f := range sources(t) {
		for _, name := range commandsIn(f) {
			found++
			if want := cmp.Or(topics[name], name) + ".go"; path.Base(f.name) != want {
				t.Errorf("the command %s is in %s, not in %s", name, f.name, want)
			}
		}
	}
	if found < 20 {
		t.Errorf("%d commands found", found)
	}
}

// commandsIn returns the names of the commands that a file makes.
func commandsIn(f source) (names []string) {
	for _, d := range f.Decls {
		fun, ok := d.(*ast.FuncDecl)
		if !ok || f.folder() != command && path.Dir(f.folder()) != commandsRoom || fun.Recv != nil || fun.Type.Results == nil || len(fun.Type.Results.List) != 1 {
			continue
		}
		name, ok := strings.CutSuffix(fun.Name.Name, "Command")
		pointer, isPointer := fun.Type.Results.List[0].Type.(*ast.StarExpr)
		if !ok || !isPointer {
			continue
		}
		if result, ok := pointer.X.(*ast.SelectorExpr); ok && result.Sel.Name == "Command" {
			names = append(names, name)
		}
	}
	return names
}

// TestFileLength checks the length of files.
func TestFileLength(t *testing.T) {
	for _, f := range sources(t) {
		if f.lines > maxLines {
			t.Errorf("%s has %d lines; at most %d", f.name, f.lines, maxLines)
		}
	}
	scripts := 0
	for _, pattern := range []string{"*", "*.d/*"} {
		names, err := filepath.Glob("../../scripts/" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			content, err := os.ReadFile(name)
			if err != nil { // it is a folder
				continue
			}
			scripts++
			if lines := bytes.Count(content, []byte("\n")); lines > maxLines {
				t.Errorf("%s has %d lines; at most %d", name, lines, maxLines)
			}
		}
	}
	if scripts == 0 {
		t.Error("there are no scripts")
	}
}

// TestOtherSystems checks that all code, including tests, compiles for other systems, except files with "_linux" in their names.
func TestOtherSystems(t *testing.T) {
	if testing.Short() {
		t.Skip("compiling everything takes long (scripts/test --everywhere)")
	}
	t.Parallel()
	cmd := exec.Command("go", "vet", "./...")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("GOOS=darwin go vet ./...: %v\n%s", err, out)
	}
}

// TestRolesBegin checks that the roles of a native prison, which take over in an init function, are initialised before the slowest
// packages. Three such processes start one after the other before a prison is running.
func TestRolesBegin(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "git-airlock")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-tags", "urfave_cli_no_docs", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	cmd := exec.Command(program, "--version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	trace, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	roles := bytes.Index(trace, []byte("\ninit "+module+"/prison/native @"))
	for _, slow := range []string{"regexp", "net", "github.com/distribution/reference"} {
		if at := bytes.Index(trace, []byte("\ninit "+slow+" @")); roles < 0 || at < 0 || at < roles {
			t.Errorf("the roles of a prison begin at byte %d of the trace, %s at %d\n%s", roles, slow, at, trace)
		}
	}
}

// TestPackageDocs checks that every package has a doc comment.
func TestPackageDocs(t *testing.T) {
	documented := map[string]bool{}
	for _, f := range sources(t) {
		if !f.test() {
			documented[f.folder()] = documented[f.folder()] || f.Doc.Text() != ""
		}
	}
	for folder, ok := range documented {
		if !ok {
			t.Errorf("%s: the package has no doc comment", folder)
		}
	}
}

// TestExportedDocs checks that every exported top-level name has a doc comment.
func TestExportedDocs(t *testing.T) {
	for _, f := range sources(t) {
		if f.test() {
			continue
		}
		for _, d := range f.Decls {
			for _, name := range undocumented(d) {
				t.Errorf("%s: %s has no doc comment", f.name, name)
			}
		}
	}
}

func undocumented(d ast.Decl) []string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil && d.Name.IsExported() && d.Doc.Text() == "" {
			return []string{d.Name.Name}
		}
	case *ast.GenDecl:
		var names []string
		for _, s := range d.Specs {
			names = append(names, undocumentedSpec(d, s)...)
		}
		return names
	}
	return nil
}

// undocumentedSpec returns the names without a comment. The comment of a group of constants or variables counts for all of them.
func undocumentedSpec(d *ast.GenDecl, s ast.Spec) []string {
	var names []string
	switch s := s.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && s.Doc.Text() == "" && (d.Lparen.IsValid() || d.Doc.Text() == "") {
			names = append(names, s.Name.Name)
		}
	case *ast.ValueSpec:
		for _, n := range s.Names {
			if n.IsExported() && s.Doc.Text() == "" && s.Comment.Text() == "" && d.Doc.Text() == "" {
				names = append(names, n.Name)
			}
		}
	}
	return names
}
