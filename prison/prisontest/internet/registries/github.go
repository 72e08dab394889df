package registries

import (
	"fmt"
	"net/http"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// github serves repositories to git, and redirects to the hosts of other files.
type github struct{ repositories string }

// elsewhere maps the last part of a path to the host that serves the file.
var elsewhere = map[string]string{
	"standin.tar.gz": "codeload.github.com", "asset": "release-assets.githubusercontent.com", "old-asset": "objects.githubusercontent.com",
}

// githubFiles returns the answers of these hosts, and of the hosts that clients ask directly.
func githubFiles() map[string]files {
	all := map[string]files{
		"api.github.com":            {"/repos/standin/r": `{"name":"r"}`},
		"raw.githubusercontent.com": {"/standin/r/HEAD/README": "standin\n"},
	}
	for name, host := range elsewhere {
		all[host] = files{"/" + name: "standin\n"}
	}
	return all
}

func (g github) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if host, ok := elsewhere[path.Base(r.URL.Path)]; ok {
		http.Redirect(w, r, "https://"+host+"/"+path.Base(r.URL.Path), http.StatusFound)
		return
	}
	parts := strings.SplitN(strings.TrimPrefix(path.Clean(r.URL.Path), "/"), "/", 3)
	if len(parts) < 3 {
		http.NotFound(w, r)
		return
	}
	repository := filepath.Join(g.repositories, strings.TrimSuffix(parts[1], ".git")+".git")
	service, isService := strings.CutPrefix(r.FormValue("service"), "git-")
	switch {
	case parts[2] == "info/refs" && isService && slices.Contains([]string{"upload-pack", "receive-pack"}, service):
		w.Header().Set("Content-Type", "application/x-git-"+service+"-advertisement")
		line := "# service=git-" + service + "\n"
		fmt.Fprintf(w, "%04x%s0000", len(line)+4, line)
		serve(w, r, service, "--advertise-refs", repository)
	case parts[2] == "git-upload-pack":
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		serve(w, r, "upload-pack", repository)
	default: // such as a push, which no test makes
		http.NotFound(w, r)
	}
}

// serve runs git's program for one request. If it fails, the client reports that.
func serve(w http.ResponseWriter, r *http.Request, service string, args ...string) {
	program := exec.CommandContext(r.Context(), "git", append([]string{"-c", "safe.directory=*", service, "--stateless-rpc"}, args...)...)
	program.Env = append(program.Environ(), "GIT_PROTOCOL="+r.Header.Get("Git-Protocol"))
	program.Stdin, program.Stdout = r.Body, w
	_ = program.Run()
}
