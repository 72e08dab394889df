package inside

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/native/wire"

	"golang.org/x/sys/unix"
)

// environment returns the initial variables of every process inside, except those of the spec. It is called after the host's file
// system is gone.
func environment(s prison.Spec) []string {
	path := prison.SearchPath
	if _, err := os.Stat("/usr/local/go/bin"); err == nil {
		path += ":/usr/local/go/bin"
	}
	return []string{
		"PATH=" + toolFolders(s) + path, "HOME=/home/" + s.User, "USER=" + s.User, "LOGNAME=" + s.User,
		"SHELL=" + shell("/"), "LANG=C.UTF-8",
	}
}

// programFolders are the folders of a tool that contain programs: bin of a prefix, node_modules/.bin where npm installed packages, and
// .bin of node_modules itself. A tool without these folders contains its programs directly.
var programFolders = []string{"bin", "node_modules/.bin", ".bin"}

// toolFolders returns the part of PATH that contains the tools.
func toolFolders(s prison.Spec) (path string) {
	if len(s.Tools) == 0 {
		return ""
	}
	path = prison.Tools + ":"
	for _, t := range s.Tools {
		tool, found := prison.Tools+"/"+t.Name, false
		for _, name := range programFolders {
			if isFolder(tool + "/" + name) {
				path, found = path+tool+"/"+name+":", true
			}
		}
		if !found && isFolder(tool) {
			path += tool + ":"
		}
	}
	return path
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// mergeEnv merges lists of variables. Later values of a name replace earlier ones.
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

// lookup finds a command as a shell in dir would. It returns a path for execve(2), or a code for why there is none.
func lookup(name, dir, path string) (found, code string) {
	if name == "" { // an empty name would match every folder of PATH
		return "", wire.NotFound
	}
	if strings.Contains(name, "/") {
		candidate := name
		if !filepath.IsAbs(name) {
			candidate = filepath.Join(dir, name)
		}
		return candidate, executable(candidate)
	}
	code = wire.NotFound
	for _, d := range filepath.SplitList(path) {
		if !filepath.IsAbs(d) {
			d = filepath.Join(dir, d)
		}
		candidate := filepath.Join(d, name)
		switch executable(candidate) {
		case "":
			return candidate, ""
		case wire.NotExecutable:
			code = wire.NotExecutable
		}
	}
	return "", code
}

func executable(path string) (code string) {
	info, err := os.Stat(path)
	switch {
	case os.IsPermission(err):
		return wire.NotExecutable
	case err != nil:
		return wire.NotFound
	case info.IsDir(), unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS) != nil:
		return wire.NotExecutable
	}
	return ""
}
