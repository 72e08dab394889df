package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/git-airlock/git-airlock/prison/docker/walls"

	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
)

// Build is an image to be built.
type Build struct {
	Name       string // as of [BuiltImage]. Required.
	Dockerfile []byte // required
	Files      []File // what it can copy from
	// Network is what the steps can reach: the name of a network of the engine's, "host" or "none"; empty for the
	// engine's default.
	Network  string
	Progress func(Step) // told of every step; may be nil
}

// File is a file of a build's context.
type File struct {
	Name    string // path from the context's top
	Content []byte
	Link    string // where a symbolic link leads; then there is no content
	Mode    int64
}

// Step is one of the steps of a build, or of a download.
type Step struct {
	Number, Of int    // from 1; 0 if it is not known
	What       string // what the Dockerfile says
	Said       string // the last line it printed; empty when it begins
}

// BuildError is a build that failed.
type BuildError struct {
	Step
	Reason string
	Output []string // the last lines that were printed
}

func (e *BuildError) Error() string {
	if e.Of == 0 {
		return "build image: " + e.Reason
	}
	return fmt.Sprintf("build image: step %d of %d, %q: %s", e.Number, e.Of, e.What, e.Reason)
}

// ImageID returns the id of an image that is here, empty if there is none of that name.
func (b *Backend) ImageID(ctx context.Context, ref string) (string, error) {
	e, err := b.engine(ctx, nil)
	if err != nil {
		return "", err
	}
	bounded, cancel := call(ctx)
	defer cancel()
	i, err := e.ImageInspect(bounded, ref)
	if gone(err) {
		return "", nil
	}
	return i.ID, e.failed(ctx, "inspect image", err)
}

// Pull downloads an image.
func (b *Backend) Pull(ctx context.Context, ref string, progress func(Step)) error {
	e, err := b.engine(ctx, nil)
	if err != nil {
		return err
	}
	if !strings.Contains(ref, "@") && strings.LastIndex(ref, ":") <= strings.LastIndex(ref, "/") {
		ref += ":latest" // without a tag the API takes all there are
	}
	stream, err := e.ImagePull(ctx, ref, image.PullOptions{})
	if err == nil {
		defer stream.Close()
		f := follower{step: Step{What: "pull " + ref}, progress: progress}
		err = f.follow(stream)
	}
	var failed *BuildError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("pull image %q: %w", ref, ctx.Err())
	case errors.As(err, &failed):
		return unavailable(fmt.Sprintf("image %q is not on this machine and cannot be downloaded: %s", ref, failed.Reason))
	case err != nil && !unreachable(err):
		return unavailable(fmt.Sprintf("image %q is not on this machine and cannot be downloaded: %s", ref, err))
	}
	return e.failed(ctx, "pull image", err)
}

// BuildImage builds an image. If it fails, or ctx ends, nothing of it stays but what the
// engine had before. The classic builder is asked: it needs no session and every engine has it.
func (b *Backend) BuildImage(ctx context.Context, w Build) error {
	e, err := b.engine(ctx, nil)
	if err != nil {
		return err
	}
	context, dockerfile, err := w.context()
	if err != nil {
		return err
	}
	p, err := e.platform(ctx, "")
	if err != nil {
		return err
	}
	if err := e.sweepBuilds(ctx); err != nil {
		return err
	}
	mark, err := newMark()
	if err != nil {
		return err
	}
	f := follower{progress: w.Progress}
	options := build.ImageBuildOptions{
		Tags: []string{w.Name}, Dockerfile: dockerfile, NetworkMode: w.Network, BuildArgs: proxies(),
		Remove: true, ForceRemove: true, Version: build.BuilderV1,
	}
	if !p.podman { // which spells it otherwise, and tidies up by itself
		options.ExtraHosts = []string{mark}
		options.Ulimits = []*container.Ulimit{walls.NoCores()}
	}
	answer, err := e.ImageBuild(ctx, context, options)
	if err == nil {
		err = f.follow(answer.Body)
		answer.Body.Close()
	}
	if err == nil {
		return nil
	}
	cleaned := e.discard(ctx, p, mark, f.made)
	var failed *BuildError
	if errors.As(err, &failed) && ctx.Err() == nil {
		return errors.Join(err, cleaned)
	}
	return errors.Join(e.failed(ctx, "build image", err), cleaned)
}

// dockerfileName is one that no file of a repository's has.
const dockerfileName = ".build-steps"

func (w Build) context() (io.Reader, string, error) {
	entries := []entry{{name: dockerfileName, content: string(w.Dockerfile), mode: 0o644}}
	for _, f := range w.Files {
		entries = append(entries, entry{name: f.Name, content: string(f.Content), link: f.Link, mode: f.Mode})
	}
	archive, err := pack(entries)
	return archive, dockerfileName, err
}

// proxies are the variables by which a step may have to reach the internet. The engine keeps these, which it knows, out
// of the image.
func proxies() map[string]*string {
	args := map[string]*string{}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY", "ALL_PROXY"} {
		for _, spelling := range []string{name, strings.ToLower(name)} {
			if value, set := os.LookupEnv(spelling); set {
				args[spelling] = &value
			}
		}
	}
	return args
}

// follower reads what the engine says of a build.
type follower struct {
	progress func(Step)
	step     Step
	output   []string
	cached   bool
	made     []string // images of steps, the newest last
}

// buildLines are the lines of a build, as Docker says them, and Podman.
type buildLines struct {
	step, image *regexp.Regexp
	own         *regexp.Regexp // of the builder about its own work
}

var lines = sync.OnceValue(func() buildLines {
	return buildLines{
		step:  regexp.MustCompile(`^(?i:step) (\d+)/(\d+) ?: (.*)`),
		image: regexp.MustCompile(`^ ?-{2,3}> ([0-9a-f]{11,64})$`),
		own:   regexp.MustCompile(`^( ?---> Running in|Removing intermediate container|Successfully (built|tagged)) `),
	}
})

// keptOutput is how many lines are remembered, to tell what went before a failure.
const keptOutput = 20

// longestLine bounds what is kept of one line: a step can print anything.
const longestLine = 400

func (f *follower) follow(stream io.Reader) error {
	d := json.NewDecoder(stream)
	for {
		var m struct {
			Stream string `json:"stream"`
			Status string `json:"status"`
			ID     string `json:"id"`
			Error  string `json:"error"`
		}
		err := d.Decode(&m)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if m.Error != "" {
			return &BuildError{f.step, m.Error, f.output}
		}
		if m.Status != "" {
			m.Stream = strings.TrimSpace(m.Status + " " + m.ID)
		}
		for line := range strings.SplitSeq(strings.TrimRight(m.Stream, "\r\n"), "\n") {
			f.line(strings.TrimRight(line, "\r"))
		}
	}
}

func (f *follower) line(line string) {
	if at := lines().step.FindStringSubmatch(line); at != nil {
		number, _ := strconv.Atoi(at[1])
		of, _ := strconv.Atoi(at[2])
		f.step, f.output, f.cached = Step{Number: number, Of: of, What: at[3]}, nil, false
		f.tell(f.step)
		return
	}
	if made := lines().image.FindStringSubmatch(line); made != nil {
		if !f.cached && f.step.Number > 1 { // the first one's is the base
			f.made = append(f.made, made[1])
		}
		return
	}
	if strings.HasPrefix(strings.TrimLeft(line, " -"), "> Using cache") {
		f.cached = true
		return
	}
	if strings.TrimSpace(line) == "" || lines().own.MatchString(line) {
		return
	}
	line = line[:min(len(line), longestLine)]
	f.output = append(f.output, line)
	f.output = f.output[max(0, len(f.output)-keptOutput):]
	said := f.step
	said.Said = line
	f.tell(said)
}

func (f *follower) tell(s Step) {
	if f.progress != nil {
		f.progress(s)
	}
}
