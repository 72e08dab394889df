package image

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

	"github.com/git-airlock/git-airlock/prison/docker/dialect"
	"github.com/git-airlock/git-airlock/prison/docker/walls"
	"github.com/git-airlock/git-airlock/words"

	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
)

// Build describes an image to build.
type Build struct {
	Name       string // from [BuiltName]; required
	Dockerfile []byte // required
	Files      []File // the build context
	// Network is the network in which the steps run: the name of one of the engine's networks, "host" or "none". Empty means the engine's
	// default.
	Network  string
	Progress func(Step) // called for every step; may be nil
}

// File is a file of a build's context.
type File struct {
	Name    string // path from the top of the context
	Content []byte
	Link    string // target of a symbolic link, which has no content
	Mode    int64  // permission bits
}

// Step is a step of a build or of a download.
type Step struct {
	Number, Of int    // Number counts from 1, and Of is the number of steps; 0 if unknown
	What       string // the instruction in the Dockerfile, or the image to download
	Said       string // the last line of the step's output; empty when the step begins
}

// BuildError is the error of a failed build.
type BuildError struct {
	Step
	Reason string   // the engine's message
	Output []string // the last lines of the step's output
}

func (e *BuildError) Error() string {
	if e.Of == 0 {
		return "build image: " + e.Reason
	}
	return fmt.Sprintf("build image: step %d of %d, %q: %s", e.Number, e.Of, e.What, e.Reason)
}

// ImageID returns the id of an image that the engine has, or an empty id if there is no image of that name.
func (s Store) ImageID(ctx context.Context, ref string) (string, error) {
	e, err := s.connect(ctx)
	if err != nil {
		return "", err
	}
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	i, err := e.ImageInspect(bounded, ref)
	if dialect.Gone(err) {
		return "", nil
	}
	return i.ID, e.Failed(ctx, "inspect image", err)
}

// Pull downloads an image.
func (s Store) Pull(ctx context.Context, ref string, progress func(Step)) error {
	e, err := s.connect(ctx)
	if err != nil {
		return err
	}
	if !strings.Contains(ref, "@") && strings.LastIndex(ref, ":") <= strings.LastIndex(ref, "/") {
		ref += ":latest" // without a tag the API downloads all tags
	}
	stream, err := e.ImagePull(ctx, ref, image.PullOptions{})
	if err == nil {
		defer stream.Close()
		f := follower{step: Step{What: "pull " + ref}, progress: progress}
		err = f.read(stream)
	}
	var failed *BuildError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("pull image %q: %w", ref, ctx.Err())
	case errors.As(err, &failed):
		return dialect.Unavailable(fmt.Sprintf("image %q is not on this machine and cannot be downloaded: %s", ref, failed.Reason))
	case err != nil && !dialect.Unreachable(err):
		return dialect.Unavailable(fmt.Sprintf("image %q is not on this machine and cannot be downloaded: %s", ref, err))
	}
	return e.Failed(ctx, "pull image", err)
}

// buildTries is how often a build is tried if the images of its steps are removed meanwhile.
const buildTries = 3

// BuildImage builds an image. If the build fails or ctx ends, everything that the build created is removed. It uses the classic builder,
// which needs no session and which every engine has. That builder does not protect the image of a finished step: if another user removes
// an image with the same first steps, the image of the step disappears, too, and the next step fails. Then the build begins again.
func (s Store) BuildImage(ctx context.Context, w Build) error {
	e, err := s.connect(ctx)
	if err != nil {
		return err
	}
	p, err := e.Platform(ctx, "")
	if err != nil {
		return err
	}
	e.sweepBuilds(ctx, s.NotOf)
	for try := 1; ; try++ {
		lost, err := s.build(ctx, e, p, w)
		if err == nil || !lost || try == buildTries {
			return err
		}
	}
}

// build builds an image once. lost reports that the build failed because the image of its last step had been removed.
func (s Store) build(ctx context.Context, e engine, p *dialect.Platform, w Build) (lost bool, err error) {
	context, dockerfile, err := w.archive()
	if err != nil {
		return false, err
	}
	mark := newMark()
	before, err := e.imageIDs(ctx)
	if err != nil {
		return false, err
	}
	f := follower{progress: w.Progress}
	options := build.ImageBuildOptions{
		Tags: []string{w.Name}, Dockerfile: dockerfile, NetworkMode: w.Network, BuildArgs: proxies(),
		Remove: true, ForceRemove: true, Version: build.BuilderV1,
	}
	if !p.HidesBuilds() {
		options.ExtraHosts = []string{mark}
		options.Ulimits = []*container.Ulimit{walls.NoCores()}
	}
	answer, err := e.ImageBuild(ctx, context, options)
	if err == nil {
		err = f.read(answer.Body)
		answer.Body.Close()
	}
	if err == nil {
		return false, nil
	}
	if f.image != "" {
		_, gone := e.ImageInspect(ctx, f.image)
		lost = dialect.Gone(gone)
	}
	cleaned := e.discard(ctx, p, mark, s.NotOf, f.made, before)
	if failed, ok := errors.AsType[*BuildError](err); ok && ctx.Err() == nil {
		return lost && cleaned == nil, errors.Join(p.Explained(err, failed.Output...), cleaned)
	}
	return false, errors.Join(p.Explained(e.Failed(ctx, "build image", err)), cleaned)
}

// proxies returns the variables through which a step may need to reach the internet. The engine knows these
// variables and keeps them out of the image.
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

// follower reads the engine's messages about a build.
type follower struct {
	progress func(Step)
	step     Step
	output   []string // the last lines of the step
	rest     string   // output since the last line end
	cached   bool     // the step's image existed before
	image    string   // the id of the last step's image, unless a step has printed such a line
	made     []string // ids of the steps' images, the newest last; steps can print such lines, so an id may be wrong
}

// buildLines are patterns for the messages of a build, for Docker and for Podman.
type buildLines struct {
	step, image *regexp.Regexp
	own         *regexp.Regexp // messages of the builder about its own work
	colour      *regexp.Regexp // control sequences of a terminal: Docker colours the standard error of a step
}

var lines = sync.OnceValue(func() buildLines {
	return buildLines{
		step:   regexp.MustCompile(`^(?i:step) (\d+)/(\d+) ?: (.*)`),
		image:  regexp.MustCompile(`^ ?-{2,3}> ([0-9a-f]{11,64})$`),
		own:    regexp.MustCompile(`^( ?-{2,3}> (Running in|Using cache)|Removing intermediate container|Successfully (built|tagged))\b`),
		colour: regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]"),
	}
})

// keptOutput is the number of lines that are kept to show the output before a failure.
const keptOutput = 20

// longestLine limits a kept line in bytes, since a step can print anything.
const longestLine = 400

func (f *follower) read(stream io.Reader) error {
	d := json.NewDecoder(stream)
	for {
		var m struct {
			Stream string `json:"stream"`
			Status string `json:"status"`
			ID     string `json:"id"`
			Error  string `json:"error"`
		}
		err := d.Decode(&m)
		if err != nil || m.Error != "" || m.Status != "" {
			f.end()
		}
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
			m.Stream = strings.TrimSpace(m.Status+" "+m.ID) + "\n"
		}
		f.add(m.Stream)
	}
}

// add reads the text of one message. A line of a step's output can be in several messages. A line of the builder has a message of its own,
// also after output without a line end.
func (f *follower) add(text string) {
	text = lines().colour.ReplaceAllString(text, "")
	if first, _, _ := strings.Cut(text, "\n"); lines().step.MatchString(first) || lines().image.MatchString(first) || lines().own.MatchString(first) {
		f.end()
	}
	parts := strings.FieldsFunc(f.rest+text, func(r rune) bool { return r == '\n' || r == '\r' })
	f.rest = ""
	if last := len(parts) - 1; last >= 0 && !strings.HasSuffix(text, "\n") && !strings.HasSuffix(text, "\r") && len(parts[last]) <= longestLine {
		f.rest, parts = parts[last], parts[:last]
	}
	for _, line := range parts {
		f.line(line)
	}
}

// end reports output without a line end as a line.
func (f *follower) end() {
	if f.rest != "" {
		f.line(f.rest)
	}
	f.rest = ""
}

func (f *follower) line(line string) {
	if next, ok := f.next(line); ok {
		f.step, f.output, f.cached = next, nil, false
		f.report(f.step)
		return
	}
	if made := lines().image.FindStringSubmatch(line); made != nil {
		f.image = made[1]
		if !f.cached && f.step.Number > 1 { // the image of the first step is the base
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
	line = words.Clip(strings.ToValidUTF8(line, ""), longestLine)
	f.output = append(f.output, line)
	f.output = f.output[max(0, len(f.output)-keptOutput):]
	said := f.step
	said.Said = line
	f.report(said)
}

// next returns the step that begins with a line. A step can print such lines, too. So next accepts only the number that follows the
// current step's, and the number of steps that the first line named.
func (f *follower) next(line string) (Step, bool) {
	at := lines().step.FindStringSubmatch(line)
	if at == nil {
		return Step{}, false
	}
	number, err := strconv.Atoi(at[1])
	of, wrong := strconv.Atoi(at[2])
	if err != nil || wrong != nil || number != f.step.Number+1 || number > of || f.step.Of != 0 && of != f.step.Of {
		return Step{}, false
	}
	return Step{Number: number, Of: of, What: at[3]}, true
}

func (f *follower) report(s Step) {
	if f.progress != nil {
		f.progress(s)
	}
}
