package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/dialect"
	"github.com/git-airlock/git-airlock/prison/docker/image"
	"github.com/git-airlock/git-airlock/prison/docker/walls"
	"github.com/git-airlock/git-airlock/words"

	"github.com/docker/docker/api/types/container"
	images "github.com/docker/docker/api/types/image"
)

// engine creates and removes the objects of prisons on an engine.
type engine struct{ *dialect.Engine }

// Backend makes prisons out of containers. It implements [prison.Backend].
type Backend struct {
	// Store manages the images from which prisons are made.
	image.Store

	host    string // address of the engine for new prisons, see New
	mu      sync.Mutex
	engines map[string]*engine // by address
}

var _ prison.Backend = (*Backend)(nil)

// New returns the backend that makes prisons out of containers. host is the address of the engine, as in DOCKER_HOST. If it is empty, the
// engine is the one that DOCKER_HOST, DOCKER_CONTEXT and docker's own settings select, or else the one at the usual socket. The backend
// connects to the engine on first use.
func New(host string) *Backend {
	b := &Backend{host: host, engines: map[string]*engine{}}
	b.Store = image.Store{NotOf: labelRole, Connect: func(ctx context.Context) (*dialect.Engine, error) {
		e, err := b.engine(ctx, nil)
		if err != nil {
			return nil, err
		}
		return e.Engine, nil
	}}
	return b
}

// Name implements [prison.Backend].
func (b *Backend) Name() string { return dialect.Name }

// Traits implements [prison.Backend].
func (b *Backend) Traits(runtime string) prison.Traits {
	return prison.Traits{Images: true, HostKernel: !dialect.OwnKernel(runtime)}
}

// Granted implements [prison.Granted]: it names the SHA-256 of the system call filter for containers.
func (b *Backend) Granted() map[string]string {
	filter, err := walls.Profile()
	if err != nil {
		return nil
	}
	sum := sha256.Sum256([]byte(filter))
	return map[string]string{"seccomp_sha256": hex.EncodeToString(sum[:])}
}

// engine returns a connection to the engine of the prison with the state r, or to the engine for new prisons if r is nil. It fails if
// that engine does not answer, at its address of then or of now. Several goroutines may call it at the same time.
func (b *Backend) engine(ctx context.Context, r *state) (*engine, error) {
	e, err := b.connected(r)
	if err != nil {
		return nil, err
	}
	if r != nil && r.Product != "" {
		e.Expect(r.Product)
	}
	err = e.Awake(ctx)
	if err == nil || r == nil || ctx.Err() != nil {
		return e, err
	}
	if now := b.moved(ctx, r); now != nil {
		return now, nil
	}
	if u, ok := errors.AsType[*prison.Unavailable](err); ok {
		another := *u
		another.Mend = append(slices.Clone(u.Mend), "export DOCKER_HOST=unix:///path/of/socket  # if the same engine has another address now")
		err = &another
	}
	return nil, err
}

// moved returns the engine for new prisons if it is the engine of the prison with the state r, which has another address now. The proof is
// an object with the key of the prison: Podman has no id of its own. moved changes the address in r.
func (b *Backend) moved(ctx context.Context, r *state) *engine {
	e, err := b.engine(ctx, nil)
	if err != nil || e.Host == r.Host {
		return nil
	}
	c, err := e.find(ctx, r)
	has := err == nil && c != nil && c.Config != nil && c.Config.Labels[labelKey] == r.Key
	if !has {
		bounded, cancel := dialect.Call(ctx)
		defer cancel()
		v, err := e.VolumeInspect(bounded, r.homeVolume())
		has = err == nil && v.Labels[labelKey] == r.Key
	}
	if !has {
		return nil
	}
	r.Host = e.Host
	return e
}

func (b *Backend) connected(r *state) (*engine, error) {
	host := b.host
	if r != nil {
		host = r.Host
	}
	host, err := dialect.Address(host)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.engines[host] == nil {
		e, err := dialect.Connect(host)
		if err != nil {
			return nil, err
		}
		b.engines[host] = &engine{e}
	}
	return b.engines[host], nil
}

// Probe implements [prison.Backend]. It reports whether an engine of this machine answers and can make prisons.
func (b *Backend) Probe(ctx context.Context) error { return b.CheckRuntime(ctx, "") }

// CheckRuntime is [Backend.Probe] for prisons with a certain container runtime.
func (b *Backend) CheckRuntime(ctx context.Context, runtime string) error {
	e, err := b.engine(ctx, nil)
	if err != nil {
		return err
	}
	_, err = e.Platform(ctx, runtime)
	return err
}

// ProbeOf implements [prison.Backend]. It probes the prison's own engine, since the caller's settings may select another one by now. It
// stores the address of an engine that has another one now.
func (b *Backend) ProbeOf(ctx context.Context, s prison.Spec) error {
	r, err := readState(s.Dir)
	if err != nil {
		return err
	}
	host := ""
	if r != nil {
		host = r.Host
	}
	e, err := b.engine(ctx, r)
	if err != nil {
		return err
	}
	if r != nil && r.Host != host { // the caller is about to start the prison
		if err := r.write(s.Dir); err != nil {
			return err
		}
	}
	_, err = e.Platform(ctx, "")
	return err
}

// Host returns the addresses of a prison's engine, and of the engine for new prisons.
func (b *Backend) Host(dir string) (its, now string, err error) {
	if now, err = dialect.Address(b.host); err != nil {
		return "", "", err
	}
	r, err := readState(dir)
	if r == nil || err != nil {
		return now, now, err
	}
	return r.Host, now, nil
}

// CheckImage checks that the engine has an image, which this package never downloads. [Backend.Start] checks the
// content of the image. Errors are *[prison.Unavailable].
func (b *Backend) CheckImage(ctx context.Context, ref string) error {
	e, err := b.engine(ctx, nil)
	if err != nil {
		return err
	}
	_, err = e.image(ctx, ref)
	return err
}

// image returns an image that the engine has.
func (e *engine) image(ctx context.Context, ref string) (images.InspectResponse, error) {
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	i, err := e.ImageInspect(bounded, ref)
	if dialect.Gone(err) {
		bring := fmt.Sprintf("docker pull %q", ref)
		if imageID().MatchString(ref) { // an id, which no registry knows
			bring = "docker images  # and take one of these"
		}
		return i, dialect.Unavailable(fmt.Sprintf("image %q is not on this machine", ref), bring)
	}
	return i, e.Failed(ctx, "inspect image", err)
}

// imageID matches the id of an image, and no name.
var imageID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(sha256:[0-9a-f]+|[0-9a-f]{12}|[0-9a-f]{64})$`) })

// pinned returns the image of a prison. Once an image has been found by its name, the prison keeps that image,
// since the name may refer to another one later.
func (e *engine) pinned(ctx context.Context, r *state, s prison.Spec) (images.InspectResponse, error) {
	if r.Ref != s.Image || r.Image == "" {
		return e.image(ctx, s.Image)
	}
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	i, err := e.ImageInspect(bounded, r.Image)
	if !dialect.Gone(err) {
		return i, e.Failed(ctx, "inspect image", err)
	}
	if _, err := e.image(ctx, s.Image); err != nil {
		return i, err
	}
	return i, dialect.Unavailable(fmt.Sprintf("image %q is another one by now: the prison was made of %s, which is not on this machine any more", s.Image, r.Image),
		"git airlock start --image "+words.ShellQuote(s.Image)+"  # takes the image that has the name now, and keeps the home")
}

// ImageOf returns the id of the image from which a prison was made last, or an empty id if its next start takes the one that has the name of
// the image then.
func (b *Backend) ImageOf(s prison.Spec) (string, error) {
	r, err := readState(s.Dir)
	if err != nil || r == nil || r.Ref != s.Image {
		return "", err
	}
	return r.Image, nil
}

// MovedImage reports whether the name of a prison's image has another image now than the prison was made from, and whether the engine still
// has the latter. If it has not, [Backend.Start] fails.
func (b *Backend) MovedImage(ctx context.Context, s prison.Spec) (moved, kept bool, err error) {
	r, err := readState(s.Dir)
	if err != nil || r == nil || r.Ref != s.Image || r.Image == "" {
		return false, false, err
	}
	e, err := b.engine(ctx, r)
	if err != nil {
		return false, false, err
	}
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	now, err := e.ImageInspect(bounded, s.Image)
	if err == nil && now.ID != r.Image {
		moved = true
		_, err = e.ImageInspect(bounded, r.Image)
		kept = err == nil
	}
	if dialect.Gone(err) {
		err = nil
	}
	return moved, kept, e.Failed(ctx, "inspect image", err)
}

// ReleaseImage makes the next start of a stopped prison take the image that has the name then. The home stays.
func (b *Backend) ReleaseImage(s prison.Spec) error {
	r, err := readState(s.Dir)
	if err != nil || r == nil {
		return err
	}
	r.Image = ""
	return r.write(s.Dir)
}

// KeepImage returns a function that gives a stopped prison the image back that it has now, after a start with another one has failed.
func (b *Backend) KeepImage(s prison.Spec) (restore func() error, err error) {
	before, err := readState(s.Dir)
	return func() error {
		r, err := readState(s.Dir)
		if err != nil || r == nil || before == nil || r.Ref == before.Ref && r.Image == before.Image {
			return err
		}
		r.Ref, r.Image = before.Ref, before.Image
		return r.write(s.Dir)
	}, err
}

// NoHostPrograms returns the error for a container that must share tools or a root folder of the host.
func NoHostPrograms() error {
	return dialect.Unavailable("it has no tools or root folder of the host's: put them into an image", "git airlock start --backend native")
}

// check returns an error for a spec that this backend cannot fulfil.
func check(s prison.Spec) error {
	switch {
	case s.ID == "", s.User == "", s.Hostname == "":
		return errors.New("docker prison: ID, User and Hostname are required")
	case !filepath.IsAbs(s.Dir), !filepath.IsAbs(s.Workspace):
		return errors.New("docker prison: Dir and Workspace must be absolute paths")
	case s.UID <= 0, s.GID <= 0:
		return fmt.Errorf("docker prison: uid %d, gid %d: want a phantom's", s.UID, s.GID)
	case s.User != filepath.Base(s.User), s.User[0] == '.':
		return fmt.Errorf("docker prison: user name %q", s.User)
	case s.Root != "" || len(s.Tools) > 0:
		return NoHostPrograms()
	case s.Image == "":
		return dialect.Unavailable("no image is given", "name one with git and a shell in it")
	}
	return nil
}

// own returns the state of a prison, its engine and its container. The container is nil if it does not exist, and all are nil for a
// prison that was never started.
func (b *Backend) own(ctx context.Context, s prison.Spec) (r *state, e *engine, c *container.InspectResponse, err error) {
	if r, err = readState(s.Dir); err != nil || r == nil {
		return nil, nil, nil, err
	}
	if e, err = b.engine(ctx, r); err != nil {
		return nil, nil, nil, err
	}
	c, err = e.find(ctx, r)
	return r, e, c, err
}

// find returns the prison's container, or nil.
func (e *engine) find(ctx context.Context, r *state) (*container.InspectResponse, error) {
	if r == nil || r.Container == "" {
		return nil, nil
	}
	c, err := e.Inspect(ctx, r.Container)
	if dialect.Gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, e.Failed(ctx, "inspect container", err)
	}
	return &c, nil
}

// Examine implements [prison.Backend].
func (b *Backend) Examine(ctx context.Context) ([]prison.Finding, error) {
	e, err := b.connected(nil)
	if err != nil {
		return nil, err
	}
	findings := []prison.Finding{{Name: "engine's address", Value: e.Host}}
	if err := e.Awake(ctx); err != nil {
		return findings, err
	}
	p, err := e.Platform(ctx, "")
	if err != nil {
		return findings, err
	}
	findings = append(findings,
		prison.Finding{Name: "engine", Value: fmt.Sprintf("%s %s, API %s", p.Product(), p.ServerVersion, e.ClientVersion())},
		prison.Finding{Name: "runtimes", Value: fmt.Sprintf("%s; %s if none is asked for",
			strings.Join(slices.Sorted(maps.Keys(p.Runtimes)), ", "), p.DefaultRuntime)},
		prison.Finding{Name: "control groups", Value: fmt.Sprintf("version %s, driver %s", p.CgroupVersion, p.CgroupDriver)},
		prison.Finding{Name: "images", Value: fmt.Sprintf("%d on this machine", p.Images)},
		networkFinding(),
	)
	plan, err := planner{Platform: p, state: &state{}}.base(rolePrison)
	if !p.Foreign("") { // in the same order as limitSockets
		plan.weaker = append(plan.weaker, prison.Weakness{Kind: prison.UncountedNetlink, Text: netlinkText})
		if cause := e.socketsUncountable(p); cause != nil {
			plan.weaker = append(plan.weaker, prison.Weakness{Kind: prison.LooseMemoryLimit, Text: socketsText(cause)})
		}
	}
	if cause := unrecorded(p, prison.Spec{}); cause != nil {
		plan.weaker = append(plan.weaker, prison.Unrecorded(cause.Error()))
	}
	for _, lacking := range plan.weaker {
		findings = append(findings, prison.Finding{Name: "isolation", Value: "not all of it", Lack: lacking.Text})
	}
	return findings, err
}

// networkFinding reports whether containers can have a network.
func networkFinding() prison.Finding {
	f := prison.Finding{Name: "network", Value: "allowlist and open, by an interface that a helper container makes with " + device}
	var u *prison.Unavailable
	err := checkNetwork(prison.Spec{Network: prison.NetworkAllowlist})
	if _, gone := os.Stat(device); err == nil && errors.Is(gone, fs.ErrNotExist) {
		err = dialect.Unavailable("none is possible without "+device, mendDevice)
	}
	if errors.As(err, &u) {
		f.Value, f.Mend = u.Reason, u.Mend
	} else if err != nil {
		f.Value = err.Error()
	}
	return f
}

// Runtimes lists the container runtimes of the engine.
func (b *Backend) Runtimes(ctx context.Context) ([]string, error) {
	e, err := b.engine(ctx, nil)
	if err != nil {
		return nil, err
	}
	p, err := e.Platform(ctx, "")
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(p.Runtimes)), nil
}
