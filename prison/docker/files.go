package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/git-airlock/git-airlock/prison"

	"github.com/docker/docker/api/types/container"
)

// entry is a file or, with a mode only, a folder of an archive.
type entry struct {
	name     string
	content  string
	link     string // where a symbolic link leads
	mode     int64
	uid, gid int
}

func folder(name string, mode int64, uid, gid int) entry {
	return entry{name: name + "/", mode: mode, uid: uid, gid: gid}
}

func pack(entries []entry) (io.Reader, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{
			Name: e.name, Mode: e.mode, Uid: e.uid, Gid: e.gid, Size: int64(len(e.content)), Typeflag: tar.TypeReg,
		}
		switch {
		case e.name[len(e.name)-1] == '/':
			h.Typeflag = tar.TypeDir
		case e.link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			return nil, err
		}
	}
	return &b, w.Close()
}

// put unpacks entries in a folder of a container, running or not.
func (e *engine) put(ctx context.Context, id, folder string, entries ...entry) error {
	archive, err := pack(entries)
	if err != nil {
		return err
	}
	bounded, cancel := call(ctx)
	defer cancel()
	err = e.CopyToContainer(bounded, id, folder, archive, container.CopyToContainerOptions{})
	return e.failed(ctx, "fill "+folder, err)
}

// accounts are the users there are inside, as files of /etc.
func accounts(s prison.Spec) []entry {
	const (
		passwd = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"
		group  = "root:x:0:\nnogroup:x:65534:\n"
	)
	return []entry{
		{name: "passwd", mode: 0o644, content: passwd + fmt.Sprintf("%s:x:%d:%d::/home/%[1]s:%[4]s\n", s.User, s.UID, s.GID, defaultSh)},
		{name: "group", mode: 0o644, content: group + fmt.Sprintf("%s:x:%d:\n", s.User, s.GID)},
	}
}

// noResolver is for Podman, which lays none of its own over the image's if there is no network: that one names what resolved where the
// image was made.
var noResolver = entry{name: "resolv.conf", mode: 0o644, content: "nameserver 127.0.0.1\n"}

// furnishLate furnishes a container of Podman's, which runs.
func (e *engine) furnishLate(ctx context.Context, id string, s prison.Spec) error {
	etc := accounts(s)
	if s.Network == prison.NetworkNone {
		etc = append(etc, noResolver)
	}
	if err := e.put(ctx, id, "/etc", etc...); err != nil {
		return err
	}
	if err := e.put(ctx, id, "/home", homeFolders(s)...); err != nil {
		return err
	}
	return e.openFolders(ctx, id)
}

// openFolders lets everybody write in the folders that are memory, where the engine could say neither whose they are nor, to a
// runtime that goes by what the image has there, their mode. They are root's, who needs no capability for it.
func (e *engine) openFolders(ctx context.Context, id string) error {
	bounded, cancel := call(ctx)
	defer cancel()
	c, err := e.ContainerInspect(bounded, id)
	if err != nil || c.HostConfig == nil {
		return e.failed(ctx, "inspect container", err)
	}
	root := &running{engine: e, id: id, user: "0:0"}
	_, err = root.plain(ctx, append([]string{defaultSh, "-c", `chmod 1777 "$@"`, "sh"}, slices.Sorted(maps.Keys(c.HostConfig.Tmpfs))...))
	return err // an image without chmod has them closed
}

// lacksShell tells why a container could not be started, if that is because its image has no shell.
func (e *engine) lacksShell(ctx context.Context, id, ref string) error {
	bounded, cancel := call(ctx)
	defer cancel()
	stat, err := e.ContainerStatPath(bounded, id, defaultSh)
	if err == nil && stat.LinkTarget != "" {
		stat, err = e.ContainerStatPath(bounded, id, stat.LinkTarget)
	}
	if !gone(err) && (err != nil || stat.Mode.IsRegular()) {
		return nil
	}
	if _, err := e.ContainerInspect(bounded, id); gone(err) { // it lacks all
		return nil
	}
	return lacksShell(ref)
}

// small is how long a file may be that get reads: an agent can have written it.
const small = 4096

var errNotSmall = errors.New("not a small regular file")

// get reads a small file of a container, running or not, without following a link at its end.
func (e *engine) get(ctx context.Context, id, file string) (string, error) {
	bounded, cancel := call(ctx)
	defer cancel()
	content, _, err := e.CopyFromContainer(bounded, id, file)
	if err != nil {
		return "", err
	}
	defer content.Close()
	archive := tar.NewReader(content)
	h, err := archive.Next()
	if err != nil {
		return "", err
	}
	if h.Typeflag != tar.TypeReg || h.Size > small {
		return "", fmt.Errorf("%s: %w", file, errNotSmall)
	}
	b, err := io.ReadAll(archive)
	return string(b), err
}
