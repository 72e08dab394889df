package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// version is set by scripts/release, for builds from sources that are no git checkout.
var version string

// versionText is the version, what it was built for and with: "1.2.0 (linux/amd64, libgit2)". Built by hand it is that of the commit.
func versionText() string {
	v := version
	if info, ok := debug.ReadBuildInfo(); ok && v == "" {
		v = info.Main.Version // of the tag, if git was there to ask
	}
	with := ""
	if v == "" || v == "(devel)" {
		// Go looks for a commit in a clone only, and not with -buildvcs=false.
		v, with = "unknown", ", built without its commit"
	}
	if strings.Contains(","+buildSetting("-tags")+",", ",libgit2,") {
		with += ", libgit2"
	}
	return fmt.Sprintf("%s (%s/%s%s)", strings.TrimPrefix(v, "v"), runtime.GOOS, runtime.GOARCH, with)
}

// buildSetting is what Go noted of the build.
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
