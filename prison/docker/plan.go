package docker

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/dialect"
	"github.com/git-airlock/git-airlock/prison/docker/image"
	"github.com/git-airlock/git-airlock/prison/docker/inside"
	"github.com/git-airlock/git-airlock/prison/docker/walls"

	"github.com/docker/docker/api/types/container"
	images "github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/mount"
)

// Labels show on the host which prison an object belongs to. They are not visible inside.
const (
	labelKey  = "workspace.key"  // the key of the prison, see [state]
	labelID   = "workspace.id"   // the prison's ID
	labelRole = "workspace.role" // purpose of the object, see rolePrison
	labelPlan = "workspace.plan" // digest of the plan of a container: a stopped container with another digest is replaced
	labelMade = "workspace.made" // random text that one creation of a container and its new volumes have in common
)

const (
	rolePrison = "prison" // the agent's container
	roleLook   = "look"   // a container made by Open or OpenHome
	roleHelper = "helper"
	roleHolder = "network" // the container whose network the agent's container is in
)

const shmMost = 256 << 20

// sayFolder prints what [folderOf] returns about the folder $_top, or dashes if the image has no stat(1).
const sayFolder = `stat -c '%d:%i %u:%g:%Y' "$_top" 2>/dev/null || echo - -`

// sayShell prints the results of [sayFolder] about the workspace and the path of the best shell in the image, or an empty line if the
// image has no git that runs. The first process must not end then: the commands that follow would fail with other errors.
const sayShell = `if git --version >/dev/null 2>&1; then
	_top=` + prison.Workspace + ` _is=$(` + sayFolder + `)
	echo "$_is $(command -v bash || command -v ` + inside.Shell + `)"
else
	echo
fi`

// waitForever is the script of the first process. It prints the result of sayShell, and then reaps orphans until its input ends. Its uid
// is not the agent's, so the agent can do nothing to it.
const waitForever = sayShell + "\n" + wait

// wait reaps orphans until the input ends.
const wait = `exec 3<&0 0</dev/null; while :; do read -r _ <&3 & wait $!; [ $? -ne 1 ] || exit 0; done`

// plan describes a container to create.
type plan struct {
	name   string
	config container.Config
	host   container.HostConfig
	nested bool // the image has volumes below /home
	weaker []prison.Weakness
}

// planner makes the plans of one prison.
type planner struct {
	*dialect.Platform
	prison.Spec
	image images.InspectResponse
	state *state
	home  home
}

// prison plans the agent's container.
func (pl planner) prison() (plan, error) {
	p, err := pl.base(rolePrison)
	if err != nil {
		return p, err
	}
	p.name = containerName(pl.Spec)
	p.config.User = nobody
	if len(pl.Env) > 0 {
		p.host.Tmpfs[inside.VariablesFolder] = inside.VariablesOptions
	}
	p.host.Mounts = append(p.host.Mounts, pl.state.mountHome(pl.state.labels(pl.Spec, rolePrison)))
	if pl.FillsLate() || slices.Contains(image.Volumes(pl.image), "/etc") {
		p.host.Mounts = append(p.host.Mounts, volume(pl.state.etcVolume(), "/etc", pl.state.labels(pl.Spec, rolePrison)))
	}
	p.host.Mounts = append(p.host.Mounts, pl.home.accounts()...)
	switch {
	case pl.state.Holder != "": // the holder's settings apply, and an engine refuses others
		p.host.NetworkMode = container.NetworkMode("container:" + pl.state.Holder)
		p.config.Hostname, p.host.DNS, p.host.DNSSearch, p.host.DNSOptions = "", nil, nil, nil
	case pl.Network != prison.NetworkNone:
		p.host.DNS, p.host.DNSOptions = []string{resolver()}, nil
	}
	p.nested = slices.ContainsFunc(image.Volumes(pl.image), func(folder string) bool { return strings.HasPrefix(folder, "/home/") })
	p.weaker = pl.Weaker
	digest, err := json.Marshal([]any{p.config, p.host})
	if err != nil {
		return p, err
	}
	sum := sha256.Sum256(digest)
	p.config.Labels[labelPlan] = hex.EncodeToString(sum[:8])
	return p, nil
}

// temporary plans a container that ends with its caller.
func (pl planner) temporary() (plan, error) {
	p, err := pl.base(roleLook)
	p.config.StdinOnce, p.config.AttachStdin = true, true
	p.host.AutoRemove = true
	p.host.Tmpfs["/home/"+pl.User] = pl.own("0700")
	return p, err
}

// base plans what all containers have in common: the strictest container that the engine can make.
func (pl planner) base(role string) (plan, error) {
	security, err := pl.securityOptions()
	if err != nil {
		return plan{}, err
	}
	p := plan{
		config: container.Config{
			Hostname: pl.Hostname, User: userOf(pl.Spec), Env: pl.environment(),
			Image: pl.image.ID, Entrypoint: []string{inside.Shell}, Cmd: []string{"-c", waitForever},
			WorkingDir: "/", OpenStdin: true, Labels: pl.state.labels(pl.Spec, role),
			StopSignal:  "SIGKILL", // the first process ignores other signals, so an engine would wait for nothing
			Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		},
		host: container.HostConfig{
			CapDrop: []string{"ALL"}, SecurityOpt: security, ReadonlyRootfs: true, Tmpfs: pl.tmpfs(),
			NetworkMode: "none", IpcMode: container.IPCModePrivate, CgroupnsMode: container.CgroupnsModePrivate,
			// If these were empty, the engine would copy the host's settings.
			DNS: []string{"127.0.0.1"}, DNSSearch: []string{"."}, DNSOptions: prison.ImpatientResolver(),
			Runtime: pl.Runtime, ShmSize: min(shmMost, pl.half()), OomScoreAdj: 500,
			LogConfig:     container.LogConfig{Type: "none"},
			RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
			MaskedPaths:   walls.Hidden(),
			Resources:     pl.resources(),
			Mounts:        []mount.Mount{bind(pl.Workspace, pl.ReadOnly)},
		},
	}
	if !pl.HidesPaths(pl.Runtime) {
		pl.Lacks(prison.HostPath, "the workspace's path on the host can be read in /proc/self/mountinfo")
	}
	p.weaker = pl.Weaker
	return p, nil
}

// nobody are the ids of the first process, which the agent could control if it had the agent's uid. Podman mounts its own account files
// over the prison's if the image does not know the uid of the first process; images know this one.
const nobody = "65534:65534"

// userOf returns the phantom's ids in the engine's format.
func userOf(s prison.Spec) string { return fmt.Sprintf("%d:%d", s.UID, s.GID) }

// securityOptions returns the engine's options for the system call filter and for no new privileges.
func (pl planner) securityOptions() ([]string, error) {
	options := []string{"no-new-privileges"}
	if pl.Security("seccomp") {
		filter, err := walls.Profile()
		if err != nil {
			return nil, err
		}
		if pl.ReadsFilter() {
			filter = filepath.Join(pl.Dir, filterName)
		}
		options = append(options, "seccomp="+filter)
	} else {
		pl.Lacks(prison.NoCallFilter, "the engine filters no system calls")
	}
	if pl.Foreign(pl.Runtime) {
		pl.Lacks(prison.OwnKernel, "the runtime has a kernel of its own: that one, and no filter, says which system calls there are, also set-id bits and namespaces in it")
		pl.Lacks(prison.LooseMemoryLimit, "a process that exceeds the memory limit ends the whole prison, and so may hundreds of processes")
	}
	if pl.MasksByOption() {
		sayable := slices.DeleteFunc(walls.Hidden(), func(path string) bool { return strings.Contains(path, ":") })
		options = append(options, "mask="+strings.Join(sayable, ":"))
	}
	if pl.Security("selinux") {
		// Otherwise the workspace would have to be relabelled, and its labels would outlive the prison.
		options = append(options, "label=disable")
		pl.Lacks(prison.NoSELinux, "SELinux does not confine the prison")
	}
	return options, nil
}

// environment returns the initial variables of every process. They are added to the image's own variables.
func (pl planner) environment() []string {
	env := []string{
		"HOSTNAME", // without a value: removes the variable
		"HOME=/home/" + pl.User, "USER=" + pl.User, "LOGNAME=" + pl.User, "SHELL=" + inside.Shell, "LANG=C.UTF-8",
	}
	search := "PATH=" + prison.SearchPath
	if pl.image.Config != nil {
		for _, entry := range pl.image.Config.Env {
			if strings.HasPrefix(entry, "PATH=") {
				search = entry
			}
		}
	}
	for _, name := range pl.proxyVariables() {
		env = append(env, name+"=")
	}
	return append(env, search)
}

// proxyVariables returns the image's variables about proxies. In a prison with a network they are empty: programs would connect to the proxy in place
// of the host that a rule names.
func (pl planner) proxyVariables() []string {
	if pl.Network == prison.NetworkNone {
		return nil
	}
	return image.ProxyVariables(pl.image, pl.Env)
}

// half is the size limit of a folder in memory, in bytes: half of the prison's memory. If files could use all of the memory, no command
// could be executed.
func (pl planner) half() int64 { return pl.Limits.OrDefault().Memory / 2 }

// everybody returns the tmpfs options of a folder that all users may write to. Programs can be executed there.
func (pl planner) everybody() string {
	options := fmt.Sprintf("rw,exec,nosuid,nodev,size=%d,mode=1777", pl.half())
	if pl.FillsTmpfs() {
		options += ",notmpcopyup" // otherwise the engine copies the content of the image's folder
	}
	return options
}

// own returns the tmpfs options of a folder that belongs to the phantom. Podman cannot set an owner, so there the folder is open to
// everybody, but no other user is inside.
func (pl planner) own(mode string) string {
	if pl.FillsTmpfs() {
		return pl.everybody()
	}
	return fmt.Sprintf("rw,exec,nosuid,nodev,size=%d,uid=%d,gid=%d,mode=%s", pl.half(), pl.UID, pl.GID, mode)
}

// tmpfs returns the folders in memory. They include the volumes of the image, for which the engine would otherwise
// create volumes on disk that outlive the container.
func (pl planner) tmpfs() map[string]string {
	folders := map[string]string{"/tmp": pl.everybody(), "/var/tmp": pl.everybody(), "/run": pl.own("0755")}
	for _, folder := range image.Volumes(pl.image) {
		if !image.Reserved(folder) {
			folders[folder] = pl.own("0755")
		}
	}
	return folders
}

// resources returns the limits. A limit that the engine cannot enforce is left out and recorded as a weakness.
func (pl planner) resources() container.Resources {
	limits := pl.Limits.OrDefault()
	r := container.Resources{Ulimits: walls.Ulimits(limits)}
	if pl.RaisesProcesses() {
		processes := 2 * int64(limits.PIDs) // counted by uid, and the exporter may have as many as the agent
		r.Ulimits = append(r.Ulimits, &container.Ulimit{Name: "nproc", Soft: processes, Hard: processes})
	}
	if pl.MemoryLimit {
		r.Memory = limits.Memory
		if pl.SwapLimit {
			r.MemorySwap = limits.Memory // the limit of memory and swap together, so that there is no swap
		} else {
			pl.Lacks(prison.LooseMemoryLimit, "memory: swapped-out memory is not counted (no swap accounting)")
		}
	} else {
		pl.Lacks(prison.NoMemoryLimit, "memory is not limited (no memory control group)")
	}
	if pl.CPUCfsQuota {
		r.NanoCPUs = int64(min(limits.CPUs, float64(pl.NCPU)) * 1e9)
	} else {
		pl.Lacks(prison.NoCPULimit, "cpus are not limited (no cpu control group)")
	}
	pids := int64(limits.PIDs)
	if pl.Foreign(pl.Runtime) {
		pids = pids*hostTasks + ownTasks // the runtime's kernel limits the agent's processes, see limitInside
	}
	if pl.PidsLimit {
		r.PidsLimit = &pids
	} else {
		// Linux counts by uid here, and no other process has the phantom's uid.
		r.Ulimits = append(r.Ulimits, &container.Ulimit{Name: "nproc", Soft: pids, Hard: pids})
		pl.Lacks(prison.LooseProcessLimit, "processes are limited by uid (no pids control group)")
	}
	return r
}

// Tasks on the host of a runtime with its own kernel: hostTasks for each task of the agent, and ownTasks for that kernel.
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

// mark labels a container to create, and the volumes that are created with it. Existing volumes keep their labels.
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
	notInNames   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^a-zA-Z0-9_.]+`) })
	notFirstChar = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[^a-zA-Z0-9]+`) })
)

// containerName returns a name that an engine accepts.
func containerName(s prison.Spec) string {
	const longest = 100
	n := notFirstChar().ReplaceAllString(notInNames().ReplaceAllString(s.Name, "-"), "")
	if n == "" {
		n = "work-" + notInNames().ReplaceAllString(s.ID, "-")
	}
	return n[:min(len(n), longest)]
}

// filterName is the file with the system call filter in the prison's folder, see [dialect.Platform.ReadsFilter].
const filterName = "seccomp.json"

// layFilter writes the filter to its file.
func layFilter(p *dialect.Platform, s prison.Spec) error {
	if !p.ReadsFilter() {
		return nil
	}
	filter, err := walls.Profile()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.Dir, filterName), []byte(filter), 0o600)
}
