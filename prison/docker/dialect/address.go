package dialect

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/git-airlock/git-airlock/prison/hostfile"

	"github.com/docker/docker/client"
)

// base returns the start of the URLs of an engine.
func base(host string) string {
	u, err := client.ParseHostURL(host)
	switch {
	case err != nil, u.Scheme == "unix": // the client connects to the socket, and ignores the host name
		return "http://engine"
	case u.Scheme == "tcp" && os.Getenv(client.EnvOverrideCertPath) != "":
		return "https://" + u.Host + u.Path
	}
	return "http://" + u.Host + u.Path
}

// Address returns the address of the requested engine. If none is requested, it selects the engine as docker(1)
// does: DOCKER_HOST, then the current context, then the usual socket.
func Address(asked string) (string, error) {
	if asked != "" {
		return asked, nil
	}
	if host := os.Getenv(client.EnvOverrideHost); host != "" {
		return host, nil
	}
	dir := os.Getenv("DOCKER_CONFIG")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return client.DefaultDockerHost, nil
		}
		dir = filepath.Join(home, ".docker")
	}
	context := os.Getenv("DOCKER_CONTEXT")
	if context == "" {
		var settings struct {
			CurrentContext string `json:"currentContext"`
		}
		file := filepath.Join(dir, "config.json")
		if err := hostfile.Read(file, &settings); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", Unavailable(fmt.Sprintf("docker's settings cannot be read: %v", err), fmt.Sprintf("\"${EDITOR:-vi}\" %q", file))
		}
		context = settings.CurrentContext
	}
	if context == "" || context == "default" {
		return client.DefaultDockerHost, nil
	}
	return contextHost(dir, context)
}

// contextHost reads the address from the file of a context, which is named after the digest of the context's name.
func contextHost(dir, context string) (string, error) {
	var meta struct {
		Endpoints map[string]struct {
			Host string
		}
	}
	digest := sha256.Sum256([]byte(context))
	path := filepath.Join(dir, "contexts", "meta", hex.EncodeToString(digest[:]), "meta.json")
	if err := hostfile.Read(path, &meta); err != nil {
		return "", Unavailable(fmt.Sprintf("docker's context %q cannot be read: %v", context, err), "docker context use default")
	}
	if host := meta.Endpoints[Name].Host; host != "" {
		return host, nil
	}
	return client.DefaultDockerHost, nil
}
