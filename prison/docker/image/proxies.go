package image

import (
	"slices"
	"strings"

	"github.com/docker/docker/api/types/image"
)

// proxyVariables are the variables, in any case, with which programs choose a proxy.
var proxyVariables = []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY", "NO_PROXY"}

// ProxyVariables returns the names of an image's variables with which programs choose a proxy, without those that the environment env has.
func ProxyVariables(i image.InspectResponse, env []string) (names []string) {
	if i.Config == nil {
		return nil
	}
	for _, entry := range i.Config.Env {
		name, value, _ := strings.Cut(entry, "=")
		given := slices.ContainsFunc(env, func(own string) bool { return strings.HasPrefix(own, name+"=") })
		if value != "" && !given && slices.Contains(proxyVariables, strings.ToUpper(name)) {
			names = append(names, name)
		}
	}
	return names
}
