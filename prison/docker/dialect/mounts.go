package dialect

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
)

// exact returns the host's part of a container's description in a form in which the engine reads each path exactly. Podman turns a mount
// into a line of comma-separated options and reads that line again, so that a part of a path can become an option, such as another source
// or another owner. It reads the elements of Binds as fields between colons.
func (e *Engine) exact(ctx context.Context, host *container.HostConfig) (*container.HostConfig, error) {
	if !slices.ContainsFunc(host.Mounts, isOdd) {
		return host, nil
	}
	p, err := e.Platform(ctx, "")
	if err != nil {
		return nil, err
	}
	changed := *host
	changed.Mounts = nil
	for _, m := range host.Mounts {
		switch {
		case !utf8.ValidString(m.Source):
			return nil, unsayable(p, m.Source, "its API carries only paths in UTF-8")
		case !p.SplitsMounts() || !isOdd(m):
			changed.Mounts = append(changed.Mounts, m)
		case strings.Contains(m.Source, ":"):
			return nil, unsayable(p, m.Source, "it would take a part for options; a path without a colon, or without commas, quotes and line breaks, works")
		default:
			changed.Binds = append(changed.Binds, bindOf(m))
		}
	}
	return &changed, nil
}

// isOdd reports whether a mount has a source that some engine would not read exactly.
func isOdd(m mount.Mount) bool {
	return m.Type == mount.TypeBind && (strings.ContainsAny(m.Source, ",\"\r\n") || !utf8.ValidString(m.Source))
}

func bindOf(m mount.Mount) string {
	options := "rw"
	if m.ReadOnly {
		options = "ro"
	}
	if m.BindOptions != nil && m.BindOptions.Propagation != "" {
		options += "," + string(m.BindOptions.Propagation)
	}
	return m.Source + ":" + m.Target + ":" + options
}

// unsayable returns the error for a path that cannot be given to an engine exactly.
func unsayable(p *Platform, source, why string) error {
	return Unavailable(fmt.Sprintf("%s cannot mount the path %q: %s", p.Product(), source, why), "git airlock start --backend native")
}

// checkMounts checks that the engine mounts the given folders of the host, and no others in their places.
func (e *Engine) checkMounts(ctx context.Context, id string, mounts []mount.Mount) error {
	mounts = slices.DeleteFunc(slices.Clone(mounts), func(m mount.Mount) bool { return m.Type != mount.TypeBind })
	if len(mounts) == 0 {
		return nil
	}
	c, err := e.ContainerInspect(ctx, id)
	if err != nil {
		return err
	}
	for _, m := range mounts {
		at := slices.IndexFunc(c.Mounts, func(p container.MountPoint) bool { return path.Clean(p.Destination) == m.Target })
		// An engine in a virtual machine adds the folder at which it has this machine's disk.
		if at < 0 || !strings.HasSuffix(c.Mounts[at].Source, path.Clean(m.Source)) {
			source := "nothing"
			if at >= 0 {
				source = c.Mounts[at].Source
			}
			return Unavailable(fmt.Sprintf("the engine would mount %q at %s instead of %q", source, m.Target, m.Source), "git airlock start --backend native")
		}
	}
	return nil
}
