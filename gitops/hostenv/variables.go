package hostenv

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// kind is the meaning of a variable's value.
type kind int

const (
	text     kind = iota // words, which may include absolute paths
	location             // one or several absolute paths, separated by colons
	commands             // a command line
)

// variables are the variables that programs on the host get, in addition to the user's airlock.keepEnv. Programs
// that git starts for a landing do not need others. LD_PRELOAD, NODE_OPTIONS, PYTHONPATH, PERL5OPT, RUBYOPT,
// BASH_ENV and similar ones make a program load the file that the value names. A star at the end of a name matches
// anything.
var variables = map[string]kind{
	"HOME": text, // see guarded
	"USER": text, "LOGNAME": text, "SHELL": location, "EMAIL": text, "SUDO_*": text, "MAIL": location,
	"LANG": text, "LANGUAGE": text, "LC_*": text, "TZ": text, "TERM": text, "COLORTERM": text, "TERM_PROGRAM*": text,
	"COLUMNS": text, "LINES": text, "NO_COLOR": text, "CLICOLOR*": text, "FORCE_COLOR": text, "CI": text,
	"TMPDIR": location, "TMP": location, "TEMP": location, "XDG_*": location,

	"DISPLAY": text, "WAYLAND_DISPLAY": text, "XAUTHORITY": location, "DBUS_SESSION_BUS_ADDRESS": text, "DESKTOP_SESSION": text,
	"SSH_AUTH_SOCK": location, "SSH_AGENT_PID": text, "SSH_ASKPASS": commands, "SSH_ASKPASS_REQUIRE": text, "SSH_TTY": location,
	"SSH_CONNECTION": text, "SSH_CLIENT": text, "GPG_TTY": location, "GPG_AGENT_INFO": text, "GNUPGHOME": location,
	"PINENTRY_USER_DATA": text, "KRB5*": text, "PASSWORD_STORE_*": text,

	"http_proxy": text, "https_proxy": text, "ftp_proxy": text, "all_proxy": text, "no_proxy": text,
	"HTTP_PROXY": text, "HTTPS_PROXY": text, "FTP_PROXY": text, "ALL_PROXY": text, "NO_PROXY": text,
	"SSL_CERT_FILE": location, "SSL_CERT_DIR": location, "CURL_CA_BUNDLE": location, "NIX_SSL_CERT_FILE": location,
	"REQUESTS_CA_BUNDLE": location, "NODE_EXTRA_CA_CERTS": location, "LOCALE_ARCHIVE": location,

	"PAGER": commands, "EDITOR": commands, "VISUAL": commands, "BROWSER": commands, "LESS": text, "LESSOPEN": commands,
	"LESSCLOSE": commands, "LESSCHARSET": text, "LESSKEY": location, "LV": text, "MORE": text, "DELTA_*": text, "BAT_*": text,

	"DOCKER_HOST": text, "DOCKER_CONFIG": location, "DOCKER_CONTEXT": text, "DOCKER_CERT_PATH": location, "DOCKER_TLS_VERIFY": text,
	"DOCKER_API_VERSION": text, "DOCKER_BUILDKIT": text, "CONTAINER_HOST": text,
	// Variables of filters for encrypted and stored files, and of credential helpers.
	"AWS_*": text, "AZURE_*": text, "GOOGLE_*": text, "CLOUDSDK_*": text, "VAULT_*": text, "SOPS_*": text, "KUBECONFIG": location,
	"GH_*": text, "GITHUB_*": text, "GITLAB_*": text, "BITBUCKET_*": text, "BW_*": text, "OP_*": text,

	"AIRLOCK_*": text, "GODEBUG": text, "GOMAXPROCS": text, "GOGC": text, "GOMEMLIMIT": text, "GOTRACEBACK": text, "GOCOVERDIR": location,
	"SOURCE_DATE_EPOCH": text, "MALLOC_*": text, "WSL_*": text, "WSLENV": text, "NO_AT_BRIDGE": text,
	"GIT_*":         text, // gitops decides which of these git gets
	"GIT_EXEC_PATH": location, "GIT_TEMPLATE_DIR": location, "GIT_SSL_CAINFO": location, "GIT_SSL_CAPATH": location,
	"GIT_ASKPASS": commands, "GIT_SSH": commands, "GIT_SSH_COMMAND": commands, "GIT_EDITOR": commands, "GIT_SEQUENCE_EDITOR": commands,
	"GIT_PAGER": commands, "GIT_EXTERNAL_DIFF": commands, "GIT_PROXY_COMMAND": commands,
}

// guarded lists the variables by which git finds the user's configuration or the repository. They may lead into the work tree. Without the former,
// commits would have no author, and the settings of the gate would be lost. The rule user-driver holds commits that change a file which they
// name.
var guarded = []string{
	"HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "PWD", "OLDPWD",
	"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_CEILING_DIRECTORIES",
	"GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_*", "GIT_CONFIG_VALUE_*", // settings, which user-driver reads
}

func isGuarded(name string) bool {
	return slices.ContainsFunc(guarded, func(g string) bool { return matches(g, name) })
}

func matches(pattern, name string) bool {
	if prefix, open := strings.CutSuffix(pattern, "*"); open {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}

// openPatterns are the variables with a star.
var openPatterns = sync.OnceValue(func() []string {
	return slices.DeleteFunc(slices.Collect(maps.Keys(variables)), func(name string) bool { return !strings.HasSuffix(name, "*") })
})

// kindOf returns the kind of a variable, and whether programs get it.
func kindOf(name string, keep []string) (kind, bool) {
	if k, known := variables[name]; known {
		return k, true
	}
	for _, pattern := range openPatterns() {
		if matches(pattern, name) {
			return variables[pattern], true
		}
	}
	return text, slices.ContainsFunc(keep, func(pattern string) bool { return matches(pattern, name) })
}

// leads returns the part of a value that may name a file in one of the trees, empty if there is none.
func leads(w *Walk, k kind, value string, trees []Tree) string {
	switch k {
	case location:
		for part := range strings.SplitSeq(value, ":") {
			if part != "" && (!filepath.IsAbs(part) || touches(w, part, trees)) {
				return part
			}
		}
		return ""
	case commands:
		if c := ReadCommand(value); c.Doubtful {
			return value
		}
	}
	for _, part := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" \t\n:=,;|&\"'()<>", r) }) {
		if filepath.IsAbs(part) && touches(w, part, trees) || k == commands && strings.Contains(part, "/") && !filepath.IsAbs(part) {
			return part
		}
	}
	return ""
}

// touches reports whether a path leads to or through something at or below one of the trees.
func touches(w *Walk, name string, trees []Tree) bool {
	steps := w.Steps(name)
	return slices.ContainsFunc(trees, func(t Tree) bool { return len(t.Inside(steps)) > 0 })
}
