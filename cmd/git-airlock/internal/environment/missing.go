package environment

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/recipe"
)

// missing collects the requirements of a setup that a prison does not have, and the commands that install them.
type missing struct {
	what []string
	apt  []string // Debian packages to install
	mise []string // tools to install with mise
}

// System is the source of a prison's system.
type System struct {
	Image  string // a container image
	Built  bool   // the image was built from the setup
	Rootfs string // a folder; without image and folder, it is the host's system
	Images bool   // the backend makes prisons from images
}

// Check returns an error if a prison does not have the requirements of a setup. open connects to the prison.
func Check(ctx context.Context, open func(context.Context) (prison.Prison, error), from System, s Setup) error {
	if err := checkRoot(ctx, open, from); err != nil {
		return err
	}
	return checkTools(ctx, open, from, s)
}

// needed are the programs that every prison needs.
var needed = []string{"sh", "git"}

// CheckFolder returns an error if a folder with another system lacks a program that every prison needs. It does not start the programs, as
// [Check] does in the prison.
func CheckFolder(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, program := range needed {
		if !slices.ContainsFunc(filepath.SplitList(prison.SearchPath), func(in string) bool {
			_, err := root.Lstat(filepath.Join(in[1:], program)) // a link may lead to a path of the other system
			return err == nil
		}) {
			return lacks(dir, program)
		}
	}
	return nil
}

func lacks(root, program string) error {
	return &Refusal{fmt.Sprintf("%s has no %s that runs, which every prison needs", gitops.Text(root), program),
		[]string{"git airlock start --rootfs FOLDER  # with sh and git in it", "git airlock start --rootfs /  # with this system"}}
}

// checkRoot returns an error if an image or a rootfs does not have the programs that every prison needs.
func checkRoot(ctx context.Context, open func(context.Context) (prison.Prison, error), r System) error {
	if r.Rootfs == "" {
		return nil
	}
	box, err := open(ctx)
	if err != nil {
		return err
	}
	defer box.Close()
	for _, program := range needed {
		probe := prison.Process{Argv: []string{program, "--version"}, Env: []string{"PATH=" + prison.SearchPath}, Dir: "/"}
		if program == "sh" { // some shells have no long options
			probe.Argv = []string{"sh", "-c", ":"}
		}
		status, err := box.Exec(ctx, probe)
		if err != nil && !errors.Is(err, prison.ErrNotFound) && !errors.Is(err, prison.ErrNotExecutable) {
			return err
		}
		if err != nil || status != 0 {
			return lacks(r.Rootfs, program)
		}
	}
	return nil
}

// checkTools returns an error if a prison does not have the tools of a setup, unless its image was built from the setup. It runs
// the checks inside, because the agent must find the tools.
func checkTools(ctx context.Context, open func(context.Context) (prison.Prison, error), r System, s Setup) error {
	if r.Built || !s.WantsTools() {
		return nil
	}
	var l missing
	if needs := s.Needs(); len(needs) > 0 {
		box, err := open(ctx)
		if err != nil {
			return err
		}
		defer box.Close()
		for _, n := range needs {
			if err := l.check(ctx, box, n); err != nil {
				return err
			}
		}
	}
	if r.Image == "" {
		if err := l.packages(r.Rootfs, s.OS.Packages); err != nil {
			return err
		}
	}
	return l.refuse(r, s)
}

// checkTime bounds the check of one program, which may be the agent's.
const checkTime = 30 * time.Second

// check runs one program inside.
func (l *missing) check(ctx context.Context, box prison.Prison, n recipe.Need) error {
	out := prison.Capped{Max: maxSaid}
	argv := append([]string{"/bin/sh", "-c", `exec 2>&1 "$@"`, "sh"}, n.Check...) // some programs print their version on standard error
	bounded, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	status, err := box.Exec(bounded, prison.Process{Argv: argv, Dir: "/", Stdout: &out})
	endless := bounded.Err() != nil && ctx.Err() == nil
	if err != nil && !endless {
		return err
	}
	var found string
	switch {
	case endless:
		found = "it does not end"
	case status == 126, status == 127:
		found = "there is none"
	case status != 0:
		found = "it does not run"
	case n.Meets(out.String()):
		return nil
	default:
		found = "it is " + gitops.Text(n.Printed(out.String())).String()
	}
	want := n.Name
	if n.Version != recipe.System {
		want += " " + n.Version
	}
	l.what = append(l.what, fmt.Sprintf("%s (%s)", want, found))
	switch {
	case n.Mise != "":
		l.mise = append(l.mise, n.Mise)
	case n.Version == recipe.System:
		l.apt = append(l.apt, n.Packages...)
	}
	return nil
}

// packages checks for Debian packages in the system's package database.
func (l *missing) packages(root string, wanted []string) error {
	if len(wanted) == 0 {
		return nil
	}
	file, err := os.Open(filepath.Join("/", root, "var/lib/dpkg/status"))
	if errors.Is(err, fs.ErrNotExist) {
		l.what = append(l.what, "the packages "+strings.Join(wanted, ", ")+" (this system has no list of Debian's packages to find them in)")
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	missing, err := recipe.MissingPackages(file, wanted)
	for _, p := range missing {
		l.what = append(l.what, "package "+p)
	}
	l.apt = append(l.apt, missing...)
	return err
}

// refuse returns the error that lists the missing requirements, and the commands that install them.
func (l *missing) refuse(r System, s Setup) error {
	if len(l.what) == 0 {
		return nil
	}
	where := "this system"
	switch {
	case r.Image != "":
		where = "image " + gitops.Text(r.Image).String()
	case r.Rootfs != "":
		where = r.Rootfs
	}
	e := &Refusal{Text: fmt.Sprintf("%s asks for tools that %s does not have: %s", s.File, where, strings.Join(l.what, ", "))}
	if packages := slices.Compact(slices.Sorted(slices.Values(l.apt))); len(packages) > 0 && r.Image == "" {
		command := "sudo apt-get install "
		if r.Rootfs != "" {
			command = "sudo chroot " + gitops.Pasteable(r.Rootfs) + " apt-get install "
		}
		e.Next = append(e.Next, command+strings.Join(packages, " "))
	}
	for _, tool := range l.mise {
		if r.Image == "" {
			name, _, _ := strings.Cut(tool, "@")
			e.Next = append(e.Next, fmt.Sprintf(`mise install %s && git airlock start --tool %s="$(mise where %[1]s)"`, tool, name))
		}
	}
	if !r.Images {
		e.Next = append(e.Next, "git airlock start --backend docker  # builds an image with all of it")
	} else {
		e.Next = append(e.Next, "git airlock start  # without --image: builds one with all of it")
	}
	e.Next = append(e.Next, "git airlock start --no-recipe")
	return e
}

// maxSaid bounds the output that is kept of a short command inside.
const maxSaid = 4096
