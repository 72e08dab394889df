package hostenv

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Dropped is a part of the user's environment that programs do not get.
type Dropped struct {
	Name  string // of the variable
	Value string // the part that leads into a work tree; empty if the variable is not one that programs get
}

func (d Dropped) String() string {
	if d.Value == "" {
		return d.Name
	}
	return fmt.Sprintf("%s: %s", d.Name, d.Value)
}

// environment is the environment of the process, as it was at the start and after the last cleaning. process is the only value of this type.
type environment struct {
	sync.Mutex
	entered  bool
	dir      string
	original map[string]string
	extra    []string // tops of work trees that were found later
	trees    []Tree   // found by the last cleaning; empty in tests, which do not call Enter
	keep     []string
	dropped  []Dropped
	cleaned  time.Time
}

var process environment

// Enter cleans the environment of this process. It removes entries from PATH that lead into a work tree around dir,
// and unsets variables that programs do not need or that lead there. It must be called once, before any program is
// looked up or started.
func Enter(dir string) {
	process.Lock()
	defer process.Unlock()
	if process.entered {
		return
	}
	process.entered, process.dir, process.original = true, dir, map[string]string{}
	for _, v := range os.Environ() {
		name, value, _ := strings.Cut(v, "=")
		process.original[name] = value
	}
	process.clean()
}

// Add adds a work tree that git has found.
func Add(top string) {
	process.Lock()
	defer process.Unlock()
	if !process.entered || slices.Contains(process.extra, top) {
		return
	}
	known := slices.ContainsFunc(process.trees, func(t Tree) bool { return t.Top == top })
	if process.extra = append(process.extra, top); !known {
		process.clean()
	}
}

// Keep passes further variables to programs, if their values do not lead into a work tree. A star at the end of a
// name matches anything.
func Keep(names []string) {
	process.Lock()
	defer process.Unlock()
	if process.entered && len(names) > 0 {
		process.keep = names
		process.clean()
	}
}

// clean computes the environment of the process again from the initial one.
func (e *environment) clean() {
	e.cleaned, e.dropped, e.trees = time.Now(), nil, findTrees(e.dir, e.original)
	for _, top := range e.extra {
		e.trees = append(e.trees, NewTree(top))
	}
	walk := new(Walk)
	for name, value := range e.original {
		if name == "PATH" || name == "PWD" {
			continue
		}
		k, wanted := kindOf(name, e.keep)
		part := ""
		if !isGuarded(name) && wanted {
			part = leads(walk, k, value, e.trees)
		}
		if !wanted || part != "" {
			e.dropped = append(e.dropped, Dropped{name, part})
			_ = os.Unsetenv(name)
		} else if now, set := os.LookupEnv(name); !set || now != value {
			_ = os.Setenv(name, value)
		}
	}
	kept, gone := cleanPath(walk, e.original["PATH"], e.trees)
	for _, entry := range gone {
		e.dropped = append(e.dropped, Dropped{"PATH", entry})
	}
	if kept != os.Getenv("PATH") {
		_ = os.Setenv("PATH", kept)
	}
	slices.SortFunc(e.dropped, func(a, b Dropped) int { return strings.Compare(a.String(), b.String()) })
}

// cleanPath separates the entries of a PATH from which programs may be started from the others.
func cleanPath(walk *Walk, value string, trees []Tree) (kept string, gone []string) {
	var entries []string
	var checked []fs.FileInfo
	for _, entry := range filepath.SplitList(value) {
		switch {
		// "", "." and other paths relative to the working directory, which is the work tree
		case !filepath.IsAbs(entry):
			gone = append(gone, cmp.Or(entry, "."))
		case touches(walk, entry, trees) || lends(walk, entry, trees, &checked):
			gone = append(gone, entry)
		default:
			entries = append(entries, entry)
		}
	}
	return cmp.Or(strings.Join(entries, ":"), systemPath), gone
}

// lends reports whether one of [programs] is a link into one of the trees in a folder. (The rule user-driver checks the programs that the user's
// configuration names.) It adds a folder without such a link to checked, so that /bin is not read again as /usr/bin.
func lends(walk *Walk, dir string, trees []Tree, checked *[]fs.FileInfo) bool {
	info, err := os.Stat(dir)
	if len(trees) == 0 || err != nil || slices.ContainsFunc(*checked, func(c fs.FileInfo) bool { return os.SameFile(c, info) }) {
		return false
	}
	target := make([]byte, 1) // every command checks some hundred names: os.Lstat would allocate for each
	lends := slices.ContainsFunc(programs, func(name string) bool {
		file := dir + "/" + name
		n, _ := syscall.Readlink(file, target)
		return n > 0 && touches(walk, file, trees)
	})
	if !lends {
		*checked = append(*checked, info)
	}
	return lends
}

// fresh is the time after a cleaning in which Refresh does nothing. A command that makes a cycle has just cleaned the environment.
const fresh = time.Second

// Refresh cleans the environment again, since links and work trees may change during the life of a daemon.
func Refresh() {
	process.Lock()
	defer process.Unlock()
	if process.entered && time.Since(process.cleaned) > fresh {
		process.clean()
	}
}

// Original returns a variable as the user has set it. It is meant for values that are passed to an agent, never for
// a program on the host.
func Original(name string) (string, bool) {
	process.Lock()
	defer process.Unlock()
	if !process.entered {
		return os.LookupEnv(name)
	}
	value, set := process.original[name]
	return value, set
}

// Names lists the variables that the user has set.
func Names() []string {
	process.Lock()
	defer process.Unlock()
	return slices.Sorted(maps.Keys(process.original))
}

// Taken returns the parts of the environment that were removed because they lead into a work tree, and the names of
// the variables that programs do not get at all.
func Taken() (led []Dropped, unknown []string) {
	process.Lock()
	defer process.Unlock()
	for _, d := range process.dropped {
		if d.Value != "" {
			led = append(led, d)
		} else {
			unknown = append(unknown, d.Name)
		}
	}
	return led, unknown
}

// Inside reports whether a path leads to or over a work tree of the repository.
func Inside(name string) bool {
	process.Lock()
	defer process.Unlock()
	return touches(new(Walk), name, process.trees)
}

// RemoveFolder removes an empty folder, but not the one in which this process was started. Git keeps that one, too.
func RemoveFolder(name string) error {
	here, err := os.Stat(".")
	if info, gone := os.Lstat(name); err == nil && gone == nil && os.SameFile(here, info) {
		return syscall.EBUSY
	}
	return syscall.Rmdir(name)
}

// Self returns the path of the running program, for starting it again. It fails with [ErrOwnProgram] if the program
// is in a work tree of the repository, where the agent could replace it.
func Self() (string, error) {
	self, err := os.Executable()
	if err == nil && Inside(self) {
		err = fmt.Errorf("%w: %q", ErrOwnProgram, self)
	}
	return self, err
}

// anew is set in a process that [Anew] has begun.
const anew = "AIRLOCK_ANEW"

// Anew begins the program again in this process, with the arguments and the environment that it had. Nothing stays in memory. It returns
// only if that fails.
func Anew() error {
	self, err := Self()
	if err != nil {
		return err
	}
	env := []string{anew + "=1"}
	for _, name := range Names() {
		value, _ := Original(name)
		env = append(env, name+"="+value)
	}
	return syscall.Exec(self, os.Args, env)
}

// IsAnew reports whether [Anew] has begun this process.
func IsAnew() bool {
	_, set := Original(anew)
	return set
}

// Homes returns the home that git and other programs use, and the home of the account, which ssh uses.
func Homes() []string {
	var all []string
	if home := os.Getenv("HOME"); filepath.IsAbs(home) {
		all = append(all, home)
	}
	if u, err := user.Current(); err == nil && filepath.IsAbs(u.HomeDir) && !slices.Contains(all, u.HomeDir) {
		all = append(all, u.HomeDir)
	}
	return all
}
