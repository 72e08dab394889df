package recipe

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/words"
)

// Sources are the paths that a Dockerfile copies from its build context, relative to the top of the context. They may
// be patterns of path.Match. "." stands for the whole context.
type Sources []string

// Length returns the number of pattern bytes that each path is compared with.
func (s Sources) Length() (n int) {
	for _, source := range s {
		n += len(source)
	}
	return n
}

// Has reports whether the Dockerfile may copy a file of the context.
func (s Sources) Has(file string) bool {
	for _, source := range s {
		if source == "." {
			return true
		}
		for p := file; p != "."; p = path.Dir(p) {
			if match, _ := path.Match(source, p); match || p == source {
				return true
			}
		}
	}
	return false
}

// Expressions for the end of a continued line, an instruction that copies, one that begins a stage, and a source that is not a file.
var (
	continued = lazily(`\\[ \t]*\r?\n([ \t]*#[^\n]*\n)*`)
	copying   = lazily(`(?i)^(?:ONBUILD\s+)?(?:COPY|ADD)\s+(.*)$`)
	starting  = lazily(`(?i)^FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?`)
	remote    = lazily(`^([a-z]+://|git@)`)
)

// Bounds of a Dockerfile. Each file of a context is compared with each path that the Dockerfile copies, and each base
// with each stage.
const (
	maxSources = 1000
	maxStages  = 1000
)

// CheckDockerfile refuses a Dockerfile that would take too long to analyse.
func CheckDockerfile(file string, content []byte) error {
	sources, stages := 0, 0
	for line := range strings.Lines(continued().ReplaceAllString(string(content), " ")) {
		line = strings.TrimSpace(line)
		if instruction := copying().FindStringSubmatch(line); instruction != nil {
			sources += strings.Count(instruction[1], ",") + len(strings.Fields(instruction[1]))
		} else if starting().MatchString(line) {
			stages++
		}
	}
	switch {
	case len(content) > MaxSize:
		return Mistake(file, "more than %d bytes", MaxSize)
	case sources > 2*maxSources: // including the destinations
		return Mistake(file, "more than %d paths to copy", maxSources)
	case stages > maxStages:
		return Mistake(file, "more than %d stages", maxStages)
	}
	return nil
}

// SourcesOf returns the paths that a Dockerfile copies. If a path is not certain, because it contains a variable, the result is the whole
// context.
func SourcesOf(dockerfile []byte) Sources {
	var all Sources
	for line := range strings.Lines(continued().ReplaceAllString(string(dockerfile), " ")) {
		if instruction := copying().FindStringSubmatch(strings.TrimSpace(line)); instruction != nil {
			all = append(all, sourcesOf(instruction[1])...)
		}
	}
	return words.Unique(all)
}

func sourcesOf(arguments string) (sources []string) {
	for strings.HasPrefix(arguments, "--") {
		option, rest, _ := strings.Cut(arguments, " ")
		if strings.HasPrefix(option, "--from=") {
			return nil
		}
		arguments = strings.TrimSpace(rest)
	}
	words := strings.Fields(arguments)
	if strings.HasPrefix(arguments, "[") && json.Unmarshal([]byte(arguments), &words) != nil {
		return []string{"."}
	}
	for _, word := range words[:max(0, len(words)-1)] {
		switch clean := strings.TrimPrefix(path.Clean("/"+word), "/"); {
		case remote().MatchString(word):
		case clean == "" || strings.ContainsAny(word, "$\"'\\"):
			return []string{"."}
		default:
			sources = append(sources, clean)
		}
	}
	return sources
}

// BasesOf returns the images that a Dockerfile starts from, except those whose name contains a variable.
func BasesOf(dockerfile []byte) (images []string) {
	var stages []string
	for line := range strings.Lines(continued().ReplaceAllString(string(dockerfile), " ")) {
		from := starting().FindStringSubmatch(strings.TrimSpace(line))
		if from == nil {
			continue
		}
		if image := from[1]; isImageName(image) && image != "scratch" && !slices.Contains(stages, strings.ToLower(image)) {
			images = append(images, image)
		}
		stages = append(stages, strings.ToLower(from[2]))
	}
	return words.Unique(images)
}
