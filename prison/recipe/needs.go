package recipe

import (
	"bufio"
	"io"
	"slices"
	"strings"
)

// Need is a program that a recipe asks for, and how to see whether a system has it.
type Need struct {
	Name     string   // what people call it
	Version  string   // exact or the beginning of one, or [System] for any
	Check    []string // the command that prints the version
	Packages []string // Debian's packages that bring it; none if it has none
	Mise     string   // as mise calls it, with the version; empty if mise is not the way
}

// Needs are the programs that a recipe asks for.
func (r Recipe) Needs() []Need {
	var all []Need
	for _, l := range r.Languages {
		all = append(all, l.need())
		if m, version := l.manager(); m != "" {
			n := Need{Name: m, Version: version, Check: []string{m, "--version"}, Packages: managerPackages[m]}
			switch {
			case m == "yarn" && l.Version == System:
				n.Check[0] = "yarnpkg" // what Debian calls it
			case m == "maven":
				n.Check[0] = "mvn"
			}
			if languages[l.Name].managers[0] == m {
				n.Packages = languages[l.Name].packages
			}
			all = append(all, n)
		}
	}
	return all
}

func (l Language) need() Need {
	k := languages[l.Name]
	n := Need{Name: l.Name, Version: l.Version, Check: k.check, Packages: k.packages}
	if len(n.Check) == 0 {
		n.Check = []string{l.Name, "--version"}
	}
	if l.Version != System {
		n.Mise = l.mise()
	}
	return n
}

// manager returns the package manager asked for, and which version of it; [System] if any will do.
func (l Language) manager() (name, version string) {
	name, version, versioned := strings.Cut(l.Manager, "@")
	if !versioned {
		version = System
	}
	return name, version
}

// mise is how mise calls the language in a version.
func (l Language) mise() string {
	name := l.Name
	if other := languages[name].mise; other != "" {
		name = other
	}
	version := strings.TrimPrefix(l.Version, "v")
	if l.Distribution != "" && l.Distribution != distributions[0] {
		version = l.Distribution + "-" + version
	}
	return name + "@" + version
}

var versionInText = lazily(`[0-9]+(\.[0-9A-Za-z_+-]+)*`)

// Meets reports whether what the check printed is the version needed: 3.12 is met by 3.12.7, and not by 3.1.
func (n Need) Meets(printed string) bool {
	if n.Version == System {
		return true
	}
	want := strings.TrimPrefix(n.Version, "v")
	return slices.ContainsFunc(versionInText().FindAllString(printed, -1), func(v string) bool {
		return v == want || strings.HasPrefix(v, want+".")
	})
}

// Printed finds the version in what a check printed.
func (n Need) Printed(printed string) string { return versionInText().FindString(printed) }

// MissingPackages reads dpkg's list of what a system has (/var/lib/dpkg/status) and returns those of the wanted
// packages, as NAME or NAME=VERSION, that are not installed.
func MissingPackages(status io.Reader, wanted []string) ([]string, error) {
	has := map[string]bool{}
	var name, version string
	var installed bool
	var provided []string
	end := func() {
		if installed {
			has[name], has[name+"="+version] = true, true
			for _, p := range provided {
				has[p] = true
			}
		}
		name, version, installed, provided = "", "", false, nil
	}
	lines := bufio.NewScanner(status)
	lines.Buffer(nil, MaxSize)
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ": ")
		switch key {
		case "":
			end()
		case "Package":
			name = value
		case "Version":
			version = value
		case "Status":
			installed = value == "install ok installed" || value == "hold ok installed"
		case "Provides":
			for p := range strings.SplitSeq(value, ",") {
				first, _, _ := strings.Cut(strings.TrimSpace(p), " ")
				provided = append(provided, first)
			}
		}
	}
	end()
	missing := slices.DeleteFunc(slices.Clone(wanted), func(p string) bool { return has[p] })
	return missing, lines.Err()
}
