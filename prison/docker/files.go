package docker

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/dialect"
	"github.com/git-airlock/git-airlock/prison/docker/image"
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

// resolverFile returns the resolv.conf(5) for Podman, which keeps the image's file in a container without a network of the engine. That
// file names the resolver of the machine where the image was built.
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

// openFolders makes the folders in memory writable for everybody, for engines that cannot set the owner of such a folder, or whose
// runtime takes the folder's mode from the image. The folders belong to root, so that root inside needs no capability to change them.
func (e *engine) openFolders(ctx context.Context, id string) error {
	c, err := e.Inspect(ctx, id)
	if err != nil || c.HostConfig == nil {
		return e.Failed(ctx, "inspect container", err)
	}
	folders := slices.DeleteFunc(slices.Sorted(maps.Keys(c.HostConfig.Tmpfs)), func(f string) bool { return f == inside.VariablesFolder })
	return e.openToAll(ctx, id, folders)
}

// openToAll makes folders that belong to root writable for everybody. If the image has no chmod, the folders stay closed.
func (e *engine) openToAll(ctx context.Context, id string, folders []string) error {
	root := &inside.Container{Engine: e.Engine, ID: id, User: "0:0"}
	_, err := root.Plain(ctx, append([]string{inside.Shell, "-c", `chmod 1777 "$@"`, "sh"}, folders...))
	return err
}

// openScratch makes the scratch folders writable if the image's are not. Some versions of runc give a new folder in memory the mode of the
// image's folder below it, whatever mode the plan says. The engine reads the image's folders here, not those in memory.
func (e *engine) openScratch(ctx context.Context, id string) error {
	closed := slices.DeleteFunc([]string{"/tmp", "/var/tmp"}, func(folder string) bool {
		bounded, cancel := dialect.Call(ctx)
		defer cancel()
		stat, err := e.ContainerStatPath(bounded, id, folder)
		return err != nil || stat.Mode&fs.ModeSticky != 0 && stat.Mode.Perm() == fs.ModePerm
	})
	if len(closed) == 0 {
		return nil
	}
	return e.openToAll(ctx, id, closed)
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
	return dialect.Unavailable(fmt.Sprintf("image %q holds no %s that runs here", ref, inside.Shell), "use an image with a shell in it")
}

// ended returns an error if the first process of a container has failed because the image is for another architecture. Otherwise
// nothing explains the error of a later step better.
func (e *engine) ended(ctx context.Context, r *state, s prison.Spec) error {
	c, err := e.Inspect(ctx, r.Container)
	if err != nil || c.State == nil || c.State.Running || c.State.ExitCode == 0 {
		return nil
	}
	return e.foreign(ctx, r.Container, s.Image, "")
}

// foreign returns an error if the image of a container is for another architecture than the engine's machine. Only a program that has not
// run is a reason to call foreign, since a machine may emulate other architectures. The error ends with the cause.
func (e *engine) foreign(ctx context.Context, id, ref, cause string) error {
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	c, err := e.ContainerInspect(bounded, id)
	if err != nil {
		return nil
	}
	i, err := e.ImageInspect(bounded, c.Image)
	if err != nil {
		return nil
	}
	v, err := e.ServerVersion(bounded)
	if err != nil || i.Architecture == "" || v.Arch == "" || i.Architecture == v.Arch {
		return nil
	}
	bring := fmt.Sprintf("docker pull --platform linux/%s %q", v.Arch, ref)
	if image.IsName(ref) || imageID().MatchString(ref) { // no registry has it
		bring = "use an image for " + v.Arch
	}
	return dialect.Unavailable(fmt.Sprintf("image %q is for another architecture: %s, and the engine runs on %s%s", ref, i.Architecture, v.Arch, cause), bring)
}

// lacksGit returns an error with the reason why git has not run in a container.
func (e *engine) lacksGit(ctx context.Context, id, ref string) error {
	c, err := e.Inspect(ctx, id)
	if err != nil || c.Config == nil {
		return e.Failed(ctx, "inspect container", err)
	}
	its := prison.SearchPath
	for _, variable := range c.Config.Env {
		if value, is := strings.CutPrefix(variable, "PATH="); is {
			its = value
		}
	}
	for folder := range strings.SplitSeq(its+":"+prison.SearchPath, ":") {
		file, mode := e.program(ctx, id, path.Join("/", folder, "git"))
		switch {
		case file == "":
		case !slices.Contains(strings.Split(its, ":"), folder):
			return dialect.Unavailable(fmt.Sprintf("git of image %q is %s, and its PATH is %s", ref, file, its), "ENV PATH="+folder+":$PATH  # in its Dockerfile")
		case mode&0o001 == 0:
			return dialect.Unavailable(fmt.Sprintf("git of image %q, %s, has mode %#o: the agent may not execute it", ref, file, mode),
				`RUN chmod a+rx "$(command -v git)"  # in its Dockerfile`)
		default:
			return dialect.Unavailable(fmt.Sprintf("git of image %q, %s, does not run", ref, file),
				fmt.Sprintf("docker run --rm --user %s --entrypoint git %q --version  # shows why", nobody, ref))
		}
	}
	return dialect.Unavailable(fmt.Sprintf("image %q holds no git", ref), "use an image with git in it")
}

// program returns the path of a program in a container's image after links, and its mode, or an empty path.
func (e *engine) program(ctx context.Context, id, name string) (file string, mode fs.FileMode) {
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	stat, err := e.ContainerStatPath(bounded, id, name)
	if err == nil && stat.LinkTarget != "" {
		name = stat.LinkTarget
		stat, err = e.ContainerStatPath(bounded, id, name)
	}
	if err != nil || !stat.Mode.IsRegular() {
		return "", 0
	}
	return name, stat.Mode.Perm()
}
