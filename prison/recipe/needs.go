package recipe

import (
	"bufio"
	"cmp"
	"io"
	"slices"
	"strings"
)

// Need is a program that a recipe requests, with the command that checks for it.
type Need struct {
	Name     string   // common name
	Version  string   // exact, or the beginning of a version, or [System] for any version
	Check    []string // the command that prints the version
	Packages []string // Debian's packages with the program; empty if there are none
	Mise     string   // mise's name with the version; empty if mise cannot install it
}

// Needs returns the programs that a recipe requests.
func (r Recipe) Needs() []Need {
	var all []Need
	for _, l := range r.Languages {
		all = append(all, l.need())
		if m, version := l.manager(); m != "" {
			n := Need{Name: m, Version: version, Check: []string{m, "--version"}, Packages: managerPackages[m]}
			switch {
			case m == "yarn" && l.Version == System:
				n.Check[0] = "yarnpkg" // Debian's name
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

// manager returns the requested package manager and its version, which is [System] if any version will do.
func (l Language) manager() (name, version string) {
	name, version, versioned := strings.Cut(l.Manager, "@")
	if !versioned {
		version = System
	}
	return name, version
}

// mise returns mise's name of the language with its version.
func (l Language) mise() string {
	version := strings.TrimPrefix(l.Version, "v")
	if l.Distribution != "" && l.Distribution != distributions[0] {
		version = l.Distribution + "-" + version
	}
	return cmp.Or(languages[l.Name].mise, l.Name) + "@" + version
}

var versionInText = lazily(`[0-9]+(\.[0-9A-Za-z_+-]+)*`)

// Meets reports whether the check printed the needed version: 3.12.7 meets 3.12, and 3.1 does not.
func (n Need) Meets(printed string) bool {
	if n.Version == System {
		return true
	}
	want := strings.TrimPrefix(n.Version, "v")
	return slices.ContainsFunc(versionInText().FindAllString(printed, -1), func(v string) bool {
		return v == want || strings.HasPrefix(v, want+".")
	})
}

// Printed returns the version in the output of a check.
func (n Need) Printed(printed string) string { return versionInText().FindString(printed) }

// MissingPackages reads dpkg's list of installed packages (/var/lib/dpkg/status). It returns the wanted packages, as
// NAME or NAME=VERSION, that are not installed.
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
