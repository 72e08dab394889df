package docker

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/walls"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/mount"
)

// Labels tell on the host what is whose. Nothing inside shows them.
const (
	labelKey  = "workspace.key"  // whose, see [record]
	labelID   = "workspace.id"   // the prison's ID
	labelRole = "workspace.role" // what for
	labelPlan = "workspace.plan" // digest of the plan, to see whether a stopped container is still right
	labelMade = "workspace.made" // which making of a container, and the volumes that were made for it
)

const (
	rolePrison = "prison" // the agent's
	roleLook   = "look"   // one made by Open
	roleHelper = "helper"
	roleSink   = "sink" // the network that leads nowhere
)

const (
	defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	defaultSh   = "/bin/sh"
	shmMost     = 256 << 20
)

// sayShell says which shell is the best there is, if there is a git.
const sayShell = `git --version >/dev/null 2>&1 || exit 0; command -v bash || command -v ` + defaultSh

// waitForever is the first process: it says what prisons need of the image, and reaps whoever is orphaned until its input ends. The
// agent can do nothing to it: its uid is another.
const waitForever = sayShell + `
exec 3<&0 0</dev/null; while :; do read -r _ <&3 & wait $!; [ $? -ne 1 ] || exit 0; done`

// plan is a container to be.
type plan struct {
	name   string
	config container.Config
	host   container.HostConfig
	nested bool // there are volumes within that of the home
	weaker []prison.Weakness
}

// planner makes the plans of one prison.
type planner struct {
	*platform
	prison.Spec
	image  image.InspectResponse
	record *record
	home   home
}

// prison plans the agent's container.
func (pl planner) prison() (plan, error) {
	p, err := pl.base(rolePrison)
	if err != nil {
		return p, err
	}
	p.name = containerName(pl.Spec)
	p.config.User = nobody
	p.config.Env = append(p.config.Env, pl.Env...)
	p.host.Mounts = append(p.host.Mounts, pl.record.mountHome(pl.record.labels(pl.Spec, rolePrison)))
	if pl.podman || slices.Contains(pl.wanted(), "/etc") {
		p.host.Mounts = append(p.host.Mounts, volume(pl.record.etcVolume(), "/etc", pl.record.labels(pl.Spec, rolePrison)))
	}
	p.host.Mounts = append(p.host.Mounts, pl.home.accounts()...)
	if pl.Network == prison.NetworkOpen {
		p.host.NetworkMode = container.NetworkMode(pl.record.network())
		p.host.DNS = nil // the engine's own resolver asks the host's
		pl.lacks(prison.HostReachable, "with an open network, what the host offers on its public addresses can be reached")
	}
	p.nested = slices.ContainsFunc(pl.wanted(), func(folder string) bool { return strings.HasPrefix(folder, "/home/") })
	p.weaker = pl.weaker
	digest, err := json.Marshal([]any{p.config, p.host})
	if err != nil {
		return p, err
	}
	sum := sha256.Sum256(digest)
	p.config.Labels[labelPlan] = hex.EncodeToString(sum[:8])
	return p, nil
}

// look plans a container that ends with its caller.
func (pl planner) look() (plan, error) {
	p, err := pl.base(roleLook)
	p.config.StdinOnce, p.config.AttachStdin = true, true
	p.host.AutoRemove = true
	p.host.Tmpfs["/home/"+pl.User] = pl.own("0700")
	return p, err
}

// base plans what both have in common: a container as closed as the engine can make it.
func (pl planner) base(role string) (plan, error) {
	security, err := pl.securityOptions()
	if err != nil {
		return plan{}, err
	}
	p := plan{
		config: container.Config{
			Hostname: pl.Hostname, User: userOf(pl.Spec), Env: pl.environment(),
			Image: pl.image.ID, Entrypoint: []string{defaultSh}, Cmd: []string{"-c", waitForever},
			WorkingDir: "/", OpenStdin: true, Labels: pl.record.labels(pl.Spec, role),
			StopSignal:  "SIGKILL", // others do not reach the first process: an engine that stops would wait for nothing
			Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		},
		host: container.HostConfig{
			CapDrop: []string{"ALL"}, SecurityOpt: security, ReadonlyRootfs: true, Tmpfs: pl.tmpfs(),
			NetworkMode: "none", IpcMode: container.IPCModePrivate, CgroupnsMode: container.CgroupnsModePrivate,
			// Otherwise the engine copies the host's settings.
			DNS: []string{"127.0.0.1"}, DNSSearch: []string{"."},
			Runtime: pl.Runtime, ShmSize: min(shmMost, pl.half()), OomScoreAdj: 500,
			LogConfig:     container.LogConfig{Type: "none"},
			RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
			MaskedPaths:   walls.Hidden(),
			Resources:     pl.resources(),
			Mounts:        []mount.Mount{bind(pl.Workspace, pl.ReadOnly)},
		},
	}
	pl.lacks(prison.HostPath, "the workspace's path on the host can be read in /proc/self/mountinfo")
	p.weaker = pl.weaker
	return p, nil
}

// nobody runs the first process: another uid than the agent's keeps the agent out of it. Podman, besides, lays accounts of
// its own over ours if the image does not know this uid.
const nobody = "65534:65534"

// userOf names the phantom as engines want it.
func userOf(s prison.Spec) string { return fmt.Sprintf("%d:%d", s.UID, s.GID) }

// securityOptions are the engine's words for the filter and for no new privileges.
func (pl planner) securityOptions() ([]string, error) {
	options := []string{"no-new-privileges"}
	if pl.security("seccomp") {
		filter, err := walls.Profile()
		if err != nil {
			return nil, err
		}
		if pl.podman {
			filter = filepath.Join(pl.Dir, filterName)
		}
		options = append(options, "seccomp="+filter)
	} else {
		pl.lacks(prison.NoCallFilter, "the engine filters no system calls")
	}
	if pl.foreign(pl.Runtime) {
		pl.lacks(prison.OwnKernel, "the runtime has a kernel of its own: that one, and no filter, says which system calls there are, also set-id bits and namespaces in it")
		pl.lacks(prison.LooseMemoryLimit, "who takes more memory than there may be ends the whole prison")
	}
	if pl.podman { // whose API has no other word for it
		sayable := slices.DeleteFunc(walls.Hidden(), func(path string) bool { return strings.Contains(path, ":") })
		options = append(options, "mask="+strings.Join(sayable, ":"))
	}
	if pl.security("selinux") {
		// Relabelling the workspace would be the alternative, and last longer than the prison.
		options = append(options, "label=disable")
		pl.lacks(prison.NoSELinux, "SELinux does not confine the prison")
	}
	return options, nil
}

// environment is what every process starts from, beside what the image itself says about its programs.
func (pl planner) environment() []string {
	env := []string{
		"HOSTNAME", // without a value: to be removed
		"HOME=/home/" + pl.User, "USER=" + pl.User, "LOGNAME=" + pl.User, "SHELL=" + defaultSh, "LANG=C.UTF-8",
	}
	search := "PATH=" + defaultPath
	if pl.image.Config != nil {
		for _, entry := range pl.image.Config.Env {
			if strings.HasPrefix(entry, "PATH=") {
				search = entry
			}
		}
	}
	return append(env, search)
}

// half of the memory is what a folder in memory may take: one that holds all of it leaves none to execute a command with.
func (pl planner) half() int64 { return pl.Limits.OrDefault().Memory / 2 }

// everybody returns the options of a tmpfs for all there are. Programs are built and run there.
func (pl planner) everybody() string {
	options := fmt.Sprintf("rw,exec,nosuid,nodev,size=%d,mode=1777", pl.half())
	if pl.podman {
		options += ",notmpcopyup" // else it has what the image has there
	}
	return options
}

// own returns the options of one that belongs to the phantom, which Podman cannot say: nobody else is inside.
func (pl planner) own(mode string) string {
	if pl.podman {
		return pl.everybody()
	}
	return fmt.Sprintf("rw,exec,nosuid,nodev,size=%d,uid=%d,gid=%d,mode=%s", pl.half(), pl.UID, pl.GID, mode)
}

// tmpfs are the folders that are memory. An image's volumes are among them, as the engine would
// make one on the disk for each, with a life of its own.
func (pl planner) tmpfs() map[string]string {
	folders := map[string]string{"/tmp": pl.everybody(), "/var/tmp": pl.everybody(), "/run": pl.own("0755")}
	for _, folder := range pl.wanted() {
		if !reserved(folder) {
			folders[folder] = pl.own("0755")
		}
	}
	return folders
}

// wanted are the folders at which the image wants a volume: the engine makes one unless something else is mounted there.
func (pl planner) wanted() (folders []string) {
	if pl.image.Config == nil {
		return nil
	}
	for folder := range pl.image.Config.Volumes {
		folders = append(folders, path.Clean(folder))
	}
	return folders
}

// OfImage returns what the image of a prison brings along: its variables, as NAME=VALUE, and the folders that it wants to be
// writable and that are so. The image is the one that the container was made of, whatever its name means by now.
func (r *running) OfImage(ctx context.Context) (env, volumes []string, err error) {
	bounded, cancel := call(ctx)
	defer cancel()
	c, err := r.ContainerInspect(bounded, r.id)
	if err != nil {
		return nil, nil, r.lost(ctx, "look at container", err)
	}
	i, err := r.ImageInspect(bounded, c.Image)
	if err != nil {
		return nil, nil, r.failed(ctx, "look at image", err)
	}
	if i.Config == nil {
		return nil, nil, nil
	}
	return i.Config.Env, slices.DeleteFunc(planner{image: i}.wanted(), reserved), nil
}

// reserved reports whether something else is mounted at a folder.
func reserved(folder string) bool {
	switch folder {
	case "/", "/tmp", "/var/tmp", "/run", "/home", "/etc", prison.Workspace:
		return true
	}
	return strings.HasPrefix(folder, "/home/") || strings.HasPrefix(folder, "/etc/")
}

// resources are the limits; what the engine cannot give is left out and noted.
func (pl planner) resources() container.Resources {
	limits := pl.Limits.OrDefault()
	r := container.Resources{Ulimits: walls.Ulimits(limits)}
	if pl.podman { // else it asks for more than it may have
		processes := 2 * int64(limits.PIDs) // by uid, which the exporter may have, too
		r.Ulimits = append(r.Ulimits, &container.Ulimit{Name: "nproc", Soft: processes, Hard: processes})
	}
	if pl.MemoryLimit {
		r.Memory = limits.Memory
		if pl.SwapLimit {
			r.MemorySwap = limits.Memory // of both together: no swap
		} else {
			pl.lacks(prison.LooseMemoryLimit, "memory: what is swapped out is not counted (no swap accounting)")
		}
	} else {
		pl.lacks(prison.NoMemoryLimit, "memory is not limited (no memory control group)")
	}
	if pl.CPUCfsQuota {
		r.NanoCPUs = int64(min(limits.CPUs, float64(pl.NCPU)) * 1e9)
	} else {
		pl.lacks(prison.NoCPULimit, "cpus are not limited (no cpu control group)")
	}
	pids := int64(limits.PIDs)
	if pl.foreign(pl.Runtime) {
		pids = pids*hostTasks + ownTasks // its kernel counts the agent's own, see limitInside
	}
	if pl.PidsLimit {
		r.PidsLimit = &pids
	} else {
		// Linux counts by uid here, and nobody else has the phantom's.
		r.Ulimits = append(r.Ulimits, &container.Ulimit{Name: "nproc", Soft: pids, Hard: pids})
		pl.lacks(prison.LooseProcessLimit, "processes are limited by uid (no pids control group)")
	}
	return r
}

// A kernel that is a program has tasks of its own on the host, and more than one for each of the agent's.
const (
	hostTasks = 4
	ownTasks  = 512
)

func bind(source string, readOnly bool) mount.Mount {
	return mount.Mount{
		Type: mount.TypeBind, Source: source, Target: prison.Workspace, ReadOnly: readOnly,
		BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate},
	}
}

// mark labels a container to be, and the volumes that are made with it: those that are there already keep their labels.
func (p plan) mark() {
	made := rand.Text()
	p.config.Labels[labelMade] = made
	for _, m := range p.host.Mounts {
		if m.Type == mount.TypeVolume {
			m.VolumeOptions.Labels[labelMade] = made
		}
	}
}

func volume(name, target string, labels map[string]string) mount.Mount {
	return mount.Mount{
		Type: mount.TypeVolume, Source: name, Target: target, VolumeOptions: &mount.VolumeOptions{Labels: labels},
	}
}

var (
	notInNames   = regexp.MustCompile(`[^a-zA-Z0-9_.]+`)
	notFirstChar = regexp.MustCompile(`^[^a-zA-Z0-9]+`)
)

// containerName makes a name that engines accept.
func containerName(s prison.Spec) string {
	const longest = 100
	n := notFirstChar.ReplaceAllString(notInNames.ReplaceAllString(s.Name, "-"), "")
	if n == "" {
		n = "work-" + notInNames.ReplaceAllString(s.ID, "-")
	}
	return n[:min(len(n), longest)]
}
