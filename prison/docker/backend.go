package docker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/git-airlock/git-airlock/prison"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
)

// Options say which engine makes the prisons.
type Options struct {
	// Host is the engine's address, as in DOCKER_HOST. Empty means what DOCKER_HOST, DOCKER_CONTEXT and
	// docker's own settings say, else the usual socket.
	Host string
}

// Backend makes prisons out of containers. It implements [prison.Backend].
type Backend struct {
	options Options

	mu      sync.Mutex
	engines map[string]*engine // by their addresses
}

var _ prison.Backend = (*Backend)(nil)

// New returns the backend that makes prisons out of containers. It connects when it is first used.
func New(o Options) *Backend { return &Backend{options: o, engines: map[string]*engine{}} }

// Name implements [prison.Backend].
func (b *Backend) Name() string { return name }

// Traits implements [prison.Backend].
func (b *Backend) Traits(runtime string) prison.Traits {
	return prison.Traits{Images: true, HostKernel: !OwnKernel(runtime)}
}

// engine returns the connection to the engine that a prison is on, or a new one is to be on, once it answers.
// It is safe for use at once by several callers.
func (b *Backend) engine(ctx context.Context, r *record) (*engine, error) {
	e, err := b.connected(r)
	if err != nil {
		return nil, err
	}
	return e, e.awake(ctx)
}

func (b *Backend) connected(r *record) (*engine, error) {
	host := b.options.Host
	if r != nil {
		host = r.Host
	}
	host, err := engineHost(host)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.engines[host] == nil {
		e, err := connect(host)
		if err != nil {
			return nil, err
		}
		b.engines[host] = e
	}
	return b.engines[host], nil
}

// Probe implements [prison.Backend]: an engine of this machine answers and can make prisons.
func (b *Backend) Probe(ctx context.Context) error { return b.CheckRuntime(ctx, "") }

// CheckRuntime is a Probe for prisons that a container runtime runs.
func (b *Backend) CheckRuntime(ctx context.Context, runtime string) error {
	e, err := b.engine(ctx, nil)
	if err != nil {
		return err
	}
	_, err = e.platform(ctx, runtime)
	return err
}

// ProbeOf is a Probe of the engine that a prison is on, by its host folder: the caller's settings may name another one since.
func (b *Backend) ProbeOf(ctx context.Context, dir string) error {
	r, err := readRecord(dir)
	if err != nil {
		return err
	}
	e, err := b.engine(ctx, r)
	if err != nil {
		return err
	}
	_, err = e.platform(ctx, "")
	return err
}

// Host is the address of the engine that a prison is on, and that of the one that a new prison would be on.
func (b *Backend) Host(dir string) (its, now string, err error) {
	if now, err = engineHost(b.options.Host); err != nil {
		return "", "", err
	}
	r, err := readRecord(dir)
	if r == nil || err != nil {
		return now, now, err
	}
	return r.Host, now, nil
}

// CheckImage makes sure that an image is here, which is never downloaded by this package. [Backend.Start] looks into
// it. What is wrong is an *[prison.Unavailable].
func (b *Backend) CheckImage(ctx context.Context, ref string) error {
	e, err := b.engine(ctx, nil)
	if err != nil {
		return err
	}
	_, err = e.image(ctx, ref)
	return err
}

func lacksGit(ref string) error {
	return unavailable(fmt.Sprintf("image %q holds no git that runs", ref), "use an image with git in it")
}

func lacksShell(ref string) error {
	return unavailable(fmt.Sprintf("image %q holds no %s that runs here", ref, defaultSh), "use an image with a shell in it")
}

// image returns an image that is here.
func (e *engine) image(ctx context.Context, ref string) (image.InspectResponse, error) {
	bounded, cancel := call(ctx)
	defer cancel()
	i, err := e.ImageInspect(bounded, ref)
	if gone(err) {
		bring := fmt.Sprintf("docker pull %q", ref)
		if imageID.MatchString(ref) { // which no registry knows
			bring = "docker images # and take one of these"
		}
		return i, unavailable(fmt.Sprintf("image %q is not on this machine", ref), bring)
	}
	return i, e.failed(ctx, "inspect image", err)
}

// imageID matches what is an image's id rather than a name.
var imageID = regexp.MustCompile(`^(sha256:[0-9a-f]+|[0-9a-f]{12}|[0-9a-f]{64})$`)

// pinned returns the image for a prison: once one has been found under a name, it stays that one. The name
// may be another's by now.
func (e *engine) pinned(ctx context.Context, r *record, s prison.Spec) (image.InspectResponse, error) {
	if r.Ref != s.Image || r.Image == "" {
		return e.image(ctx, s.Image)
	}
	bounded, cancel := call(ctx)
	defer cancel()
	i, err := e.ImageInspect(bounded, r.Image)
	if !gone(err) {
		return i, e.failed(ctx, "inspect image", err)
	}
	if _, err := e.image(ctx, s.Image); err != nil {
		return i, err
	}
	return i, unavailable(fmt.Sprintf("image %q is another one by now: the prison was made of %s, which is not on this machine any more", s.Image, r.Image),
		"git airlock clear # then start anew, with the image that has the name now")
}

// check refuses what this backend cannot make.
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
		return unavailable("it has no tools or root folder of the host's: put them into an image", "git airlock start --backend native")
	case s.Image == "":
		return unavailable("no image is given", "name one with git and a shell in it")
	}
	return nil
}

// find returns the prison's container, or nil.
func (e *engine) find(ctx context.Context, r *record) (*container.InspectResponse, error) {
	if r == nil || r.Container == "" {
		return nil, nil
	}
	bounded, cancel := call(ctx)
	defer cancel()
	c, err := e.ContainerInspect(bounded, r.Container)
	if gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, e.failed(ctx, "inspect container", err)
	}
	return &c, nil
}

func runs(c *container.InspectResponse) bool { return c != nil && c.State != nil && c.State.Running }

// Examine implements [prison.Backend].
func (b *Backend) Examine(ctx context.Context) ([]prison.Finding, error) {
	e, err := b.connected(nil)
	if err != nil {
		return nil, err
	}
	findings := []prison.Finding{{Name: "engine's address", Value: e.host}}
	if err := e.awake(ctx); err != nil {
		return findings, err
	}
	p, err := e.platform(ctx, "")
	if err != nil {
		return findings, err
	}
	findings = append(findings,
		prison.Finding{Name: "engine", Value: fmt.Sprintf("%s %s, API %s", p.product(), p.ServerVersion, e.ClientVersion())},
		prison.Finding{Name: "runtimes", Value: fmt.Sprintf("%s; %s if none is asked for",
			strings.Join(slices.Sorted(maps.Keys(p.Runtimes)), ", "), p.DefaultRuntime)},
		prison.Finding{Name: "control groups", Value: fmt.Sprintf("version %s, driver %s", p.CgroupVersion, p.CgroupDriver)},
		prison.Finding{Name: "images", Value: fmt.Sprintf("%d on this machine", p.Images)},
	)
	plan, err := planner{platform: p, record: &record{}}.base(rolePrison)
	if cause := e.socketsUncountable(p); cause != nil && !p.foreign("") {
		plan.weaker = append(plan.weaker, prison.Weakness{Kind: prison.LooseMemoryLimit, Text: socketsText(cause)})
	}
	for _, lacking := range plan.weaker {
		findings = append(findings, prison.Finding{Name: "isolation", Value: "not all of it", Lack: lacking.Text})
	}
	return findings, err
}
