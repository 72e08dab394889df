package recipe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/words"
)

// miseVersion is the version of mise that installs languages in exact versions.
const miseVersion = "v2026.9.15"

// baseline is installed in every environment: git, a common shell, certificates.
var baseline = []string{"bash", "ca-certificates", "git"}

// miseNeeds are the packages that mise needs to fetch and unpack languages.
var miseNeeds = []string{"curl", "gzip", "tar", "unzip", "xz-utils"}

// agentID is the id of the user in an image. It belongs to no account. The prison replaces it by its own account, which has a new uid each
// time, so the image does not depend on that uid and can be kept.
const agentID = 65532

// miseFolder contains the languages that mise has installed, readable by all users.
const miseFolder = "/opt/mise"

// NeedsBuild reports whether an image must be built for a recipe. A recipe with a Dockerfile and nothing else uses
// the image of that Dockerfile.
func (r Recipe) NeedsBuild() bool {
	return r.OS.Dockerfile == "" || len(r.OS.Packages) > 0 || len(r.Languages) > 0 || len(r.Agents) > 0
}

// Dockerfile returns the Dockerfile for a recipe. base is the image to start from; empty for the one that the recipe names. Equal recipes
// give equal bytes.
func (r Recipe) Dockerfile(base string) []byte { return r.dockerfile(base, false) }

func (r Recipe) dockerfile(base string, trusting bool) []byte {
	w := &writer{}
	w.line("FROM %s", cmp.Or(base, r.OS.Base, defaultBase))
	w.line("USER 0") // not "root": an image can lack accounts
	w.line(`SHELL ["/bin/sh", "-ec"]`)
	w.line(`RUN command -v apt-get >/dev/null || { echo "the base image has no apt-get: it must be a Debian or Ubuntu" >&2; exit 1; }`)
	if trusting {
		w.copyAuthorities()
	}
	packages := r.packages()
	w.line("RUN export DEBIAN_FRONTEND=noninteractive; apt-get update; \\")
	if i := slices.Index(packages, icu); i >= 0 {
		packages = slices.Delete(packages, i, i+1)
		w.line("    icu=$(apt-cache pkgnames libicu | grep -E '^libicu[0-9]+$' | sort -V | tail -n 1); \\")
		packages = append(packages, `"$icu"`)
	}
	// Do not sync each file to the disk: if the machine fails, there is no image.
	w.line("    apt-get install -y --no-install-recommends -o Dpkg::Options::=--force-unsafe-io \\")
	w.line("    %s; \\", strings.Join(packages, " "))
	w.line("    apt-get clean; rm -rf /var/lib/apt/lists/* /var/log/apt /var/log/dpkg.log /var/cache/debconf/*-old")
	if trusting {
		w.joinAuthorities()
	}
	r.mise(w)
	r.managers(w)
	r.verify(w)
	r.agents(w)
	if trusting {
		w.removeAuthorities()
	}
	w.line("USER %d:%d", agentID, agentID)
	w.line("WORKDIR /workspace")
	return []byte(w.String())
}

// packages returns the packages for apt to install, without duplicates.
func (r Recipe) packages() []string {
	all := slices.Concat(baseline, r.OS.Packages)
	for _, l := range r.Languages {
		if l.Version == System {
			all = append(all, languages[l.Name].packages...)
			m, _ := l.manager()
			all = append(all, managerPackages[m]...)
		} else {
			all = append(all, languages[l.Name].requires...)
		}
	}
	if len(r.Agents) > 0 && !r.hasNode() {
		all = append(all, languages["node"].packages...)
	}
	if len(r.byMise()) > 0 {
		all = append(all, miseNeeds...)
	}
	return words.Unique(all)
}

// byMise returns the languages and managers that mise installs.
func (r Recipe) byMise() (all []string) {
	for _, l := range r.Languages {
		if l.Version != System {
			all = append(all, l.mise())
		}
		name, version := l.manager()
		bringsIt := name == "uv" || l.Version != System && (name == "maven" || name == "gradle")
		if !bringsIt {
			continue
		}
		if version == System {
			version = "latest" // the latest version on the day of the build, for as long as the image is kept
		}
		all = append(all, name+"@"+version)
	}
	return all
}

// mise installs languages in exact versions for all users. It links to their programs, because mise's own shims would
// obey files of the workspace that ask for other versions.
func (r Recipe) mise(w *writer) {
	tools := r.byMise()
	if len(tools) == 0 {
		return
	}
	w.line("RUN curl -fsSL https://mise.run -o /tmp/install; \\")
	w.line("    MISE_VERSION=%s MISE_INSTALL_PATH=/usr/local/bin/mise sh /tmp/install; rm /tmp/install", miseVersion)
	w.arg("MISE_DATA_DIR", miseFolder)
	w.arg("MISE_GLOBAL_CONFIG_FILE", miseFolder+"/config.toml")
	w.arg("MISE_CACHE_DIR", "/tmp/mise")
	w.arg("MISE_YES", "1")
	for _, l := range r.Languages {
		if l.Name == "rust" && l.Version != System {
			w.line("ENV RUSTUP_HOME=%s/rustup RUSTUP_TOOLCHAIN=%s", miseFolder, strings.TrimPrefix(l.Version, "v"))
			w.arg("MISE_RUSTUP_HOME", miseFolder+"/rustup")
			w.arg("MISE_CARGO_HOME", miseFolder+"/cargo")
			w.arg("CARGO_HOME", miseFolder+"/cargo")
		}
	}
	for _, tool := range tools {
		w.line("RUN mise use --global --pin %s; rm -rf /tmp/mise", tool)
	}
	w.link()
}

// arg sets a variable for the following build steps, but not in the image.
func (w *writer) arg(name, value string) { w.line("ARG %s=%s", name, value) }

// link links to all programs that mise has installed so far.
func (w *writer) link() {
	w.line("RUN for folder in $(mise bin-paths); do for program in \"$folder\"/*; do \\")
	w.line("    if [ -x \"$program\" ]; then ln -sf \"$program\" /usr/local/bin/; fi; done; done")
}

// managers installs the package managers that pip or npm installs.
func (r Recipe) managers(w *writer) {
	for _, l := range r.Languages {
		name, version := l.manager()
		at := func(sign string) string {
			if version == System {
				return name
			}
			return name + sign + version
		}
		switch {
		case l.Version != System && (name == "poetry" || name == "pipenv"):
			w.line("RUN python3 -m pip install --no-cache-dir --root-user-action=ignore %s", at("=="))
		case name == "pnpm" || name == "yarn" && l.Version != System:
			w.line("RUN npm install --global --no-audit --no-fund %s; rm -rf /root/.npm", at("@"))
		default:
			continue
		}
		if l.Version != System {
			w.link()
		}
	}
}

// verify adds checks that every requested program runs, in the requested version.
func (r Recipe) verify(w *writer) {
	checks := []string{"git --version"}
	for _, n := range r.Needs() {
		check := strings.Join(n.Check, " ")
		if n.Version == System {
			checks = append(checks, check)
			continue
		}
		checks = append(checks, fmt.Sprintf("%s 2>&1 | grep -F %s", check, words.ShellQuote(strings.TrimPrefix(n.Version, "v"))))
	}
	w.line("RUN %s", strings.Join(checks, "; \\\n    "))
}
