package image

import (
	"path"
	"strings"

	"github.com/git-airlock/git-airlock/prison"

	"github.com/docker/docker/api/types/image"
)

// Volumes returns the folders for which an image declares a volume. The engine creates such a volume unless
// something else is mounted there.
func Volumes(i image.InspectResponse) (folders []string) {
	if i.Config == nil {
		return nil
	}
	for folder := range i.Config.Volumes {
		folders = append(folders, path.Clean(folder))
	}
	return folders
}

// Reserved reports whether a prison always mounts something else at a folder.
func Reserved(folder string) bool {
	switch folder {
	case "/", "/tmp", "/var/tmp", "/run", "/home", "/etc", prison.Workspace:
		return true
	}
	return strings.HasPrefix(folder, "/home/") || strings.HasPrefix(folder, "/etc/")
}
