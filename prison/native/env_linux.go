package native

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/git-airlock/git-airlock/prison"

	"golang.org/x/sys/unix"
)

const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment is what every process inside starts from. It runs inside, after the host is gone.
func environment(s prison.Spec) []string {
	path := searchPath
	if _, err := os.Stat("/usr/local/go/bin"); err == nil {
		path += ":/usr/local/go/bin"
	}
	env := []string{
		"PATH=" + toolFolders(s) + path, "HOME=/home/" + s.User, "USER=" + s.User, "LOGNAME=" + s.User,
		"SHELL=" + shell("/"), "LANG=C.UTF-8",
	}
	return mergeEnv(env, s.Env)
}

// toolFolders are the part of PATH in which tools are found.
func toolFolders(s prison.Spec) (path string) {
	if len(s.Tools) == 0 {
		return ""
	}
	path = prison.Tools + ":"
	for _, t := range s.Tools {
		folder := prison.Tools + "/" + t.Name
		if _, err := os.Stat(folder + "/bin"); err == nil {
			folder += "/bin"
		}
		if info, err := os.Stat(folder); err == nil && info.IsDir() {
			path += folder + ":"
		}
	}
	return path
}

// mergeEnv lets later values of a name replace earlier ones.
func mergeEnv(lists ...[]string) []string {
	var out []string
	at := map[string]int{}
	for _, list := range lists {
		for _, entry := range list {
			name, _, _ := strings.Cut(entry, "=")
			if i, seen := at[name]; seen {
				out[i] = entry
				continue
			}
			at[name] = len(out)
			out = append(out, entry)
		}
	}
	return out
}

func getenv(env []string, name string) string {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// Codes of failures that callers tell apart.
const (
	codeNotFound      = "not found"
	codeNotExecutable = "not executable"
	codeNotLaunched   = "not launched"
	codeFlooded       = "flooded"
)

// lookup finds a command as a shell would, seen from dir. It returns a path for execve and, when
// there is none, why.
func lookup(name, dir, path string) (found, code string) {
	if name == "" { // which every folder of the path would be
		return "", codeNotFound
	}
	if strings.Contains(name, "/") {
		candidate := name
		if !filepath.IsAbs(name) {
			candidate = filepath.Join(dir, name)
		}
		return candidate, executable(candidate)
	}
	code = codeNotFound
	for _, d := range filepath.SplitList(path) {
		if !filepath.IsAbs(d) {
			d = filepath.Join(dir, d)
		}
		candidate := filepath.Join(d, name)
		switch executable(candidate) {
		case "":
			return candidate, ""
		case codeNotExecutable:
			code = codeNotExecutable
		}
	}
	return "", code
}

func executable(path string) (code string) {
	info, err := os.Stat(path)
	switch {
	case os.IsPermission(err):
		return codeNotExecutable
	case err != nil:
		return codeNotFound
	case info.IsDir(), unix.Access(path, unix.X_OK) != nil:
		return codeNotExecutable
	}
	return ""
}
