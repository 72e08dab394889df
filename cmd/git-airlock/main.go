package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/command/landing"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/command/lifecycle"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/command/net"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/command/prepare"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/command/proof"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/command/records"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/command/review"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
	"github.com/git-airlock/git-airlock/prison/docker/inside"
	"github.com/git-airlock/git-airlock/snapshot/checkpoint/files"
)

func main() {
	files.Reexec()  // does not return in a process that serves a workspace
	inside.Reexec() // does not return in a process that is part of a prison; a native one's never comes here
	if cwd, err := os.Getwd(); err == nil {
		hostenv.Enter(cwd)
	}
	os.Exit(cmdline.Run(newProgram(), os.Args))
}

// newProgram describes the program with all its commands, in the order of the help.
func newProgram() *cli.App {
	return cmdline.Program(versionText(), slices.Concat(
		lifecycle.Commands(), landing.Commands(), review.Commands(), records.Commands(), proof.Commands(), net.Commands(), prepare.Commands(),
		[]*cli.Command{manualCommand(), completionCommand(), completeCommand(), helpCommand()},
	))
}

// version is set by scripts/release, for builds from sources outside of a git checkout.
var version string

// versionText returns the version with platform and build tags: "1.2.0 (linux/amd64, libgit2)". A build by hand has the version of its
// commit.
func versionText() string {
	v := version
	if info, ok := debug.ReadBuildInfo(); ok && v == "" {
		v = info.Main.Version // from the tag, if go build found git
	}
	with := ""
	if v == "" || v == "(devel)" {
		// Go records a commit only in a clone, and not with -buildvcs=false.
		v, with = "unknown", ", built without its commit"
	}
	if strings.Contains(","+buildSetting("-tags")+",", ",libgit2,") {
		with += ", libgit2"
	}
	return fmt.Sprintf("%s (%s/%s%s)", strings.TrimPrefix(v, "v"), runtime.GOOS, runtime.GOARCH, with)
}

// buildSetting returns a build setting that Go recorded.
func buildSetting(key string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
