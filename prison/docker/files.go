package docker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/dialect"
	"github.com/git-airlock/git-airlock/prison/docker/inside"
)

// accounts returns the files of /etc that define the users inside.
func accounts(s prison.Spec) []dialect.Entry {
	const (
		passwd = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"
		group  = "root:x:0:\nnogroup:x:65534:\n"
	)
	return []dialect.Entry{
		{Name: "passwd", Mode: 0o644, Content: passwd + fmt.Sprintf("%s:x:%d:%d::/home/%[1]s:%[4]s\n", s.User, s.UID, s.GID, inside.Shell)},
		{Name: "group", Mode: 0o644, Content: group + fmt.Sprintf("%s:x:%d:\n", s.User, s.GID)},
	}
}

// resolverFile is for Podman, which does not replace the image's resolv.conf where it makes no network, and it makes none:
// the interface of a prison comes later. The image's file names the resolver of the machine where the image was built.
func resolverFile(s prison.Spec) dialect.Entry {
	content := "nameserver 127.0.0.1\noptions " + strings.Join(prison.ImpatientResolver(), " ") + "\n"
	if s.Network != prison.NetworkNone {
		content = "nameserver " + resolver() + "\n"
	}
	return dialect.Entry{Name: "resolv.conf", Mode: 0o644, Content: content}
}

// fillLate puts accounts and home into a running container, see [dialect.Platform.FillsLate].
func (e *engine) fillLate(ctx context.Context, id string, s prison.Spec) error {
	if err := e.Put(ctx, id, "/etc", append(accounts(s), resolverFile(s))...); err != nil {
		return err
	}
	if err := e.Put(ctx, id, "/home", homeFolders(s)...); err != nil {
		return err
	}
	return e.openFolders(ctx, id)
}

// openFolders makes the folders in memory writable for everybody. It is for engines that cannot set the owner of
// such a folder, nor its mode for a runtime that copies the mode from the image. The folders belong to root, so
// root inside needs no capability to change them.
func (e *engine) openFolders(ctx context.Context, id string) error {
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	c, err := e.ContainerInspect(bounded, id)
	if err != nil || c.HostConfig == nil {
		return e.Failed(ctx, "inspect container", err)
	}
	root := &inside.Container{Engine: e.Engine, ID: id, User: "0:0"}
	folders := slices.DeleteFunc(slices.Sorted(maps.Keys(c.HostConfig.Tmpfs)), func(f string) bool { return f == inside.VariablesFolder })
	_, err = root.Plain(ctx, append([]string{inside.Shell, "-c", `chmod 1777 "$@"`, "sh"}, folders...))
	return err // in an image without chmod they stay closed
}

// lacksShell returns an error if a container could not be started because its image has no shell.
func (e *engine) lacksShell(ctx context.Context, id, ref string) error {
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	stat, err := e.ContainerStatPath(bounded, id, inside.Shell)
	if err == nil && stat.LinkTarget != "" {
		stat, err = e.ContainerStatPath(bounded, id, stat.LinkTarget)
	}
	if !dialect.Gone(err) && (err != nil || stat.Mode.IsRegular()) {
		return nil
	}
	// the container is gone, so nothing can be checked
	if _, err := e.ContainerInspect(bounded, id); dialect.Gone(err) {
		return nil
	}
	return lacksShell(ref)
}
