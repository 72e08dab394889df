package recipe

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
)

// Sources are what a Dockerfile copies from its context: paths from the context's top, which may be patterns as
// of path.Match; "." is all of it.
type Sources []string

// Whole tells whether all of the context can be copied.
func (s Sources) Whole() bool { return slices.Contains(s, ".") }

// Has tells whether a file of the context can be copied.
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

var (
	continued = lazily(`\\[ \t]*\r?\n([ \t]*#[^\n]*\n)*`)
	copying   = lazily(`(?i)^(?:ONBUILD\s+)?(?:COPY|ADD)\s+(.*)$`)
	starting  = lazily(`(?i)^FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?`)
	elsewhat  = lazily(`^([a-z]+://|git@)`)
)

// SourcesOf reads what a Dockerfile copies. Where it cannot be told, as a variable is in it, that is everything.
func SourcesOf(dockerfile []byte) Sources {
	var all Sources
	for line := range strings.Lines(continued().ReplaceAllString(string(dockerfile), " ")) {
		if instruction := copying().FindStringSubmatch(strings.TrimSpace(line)); instruction != nil {
			all = append(all, sourcesOf(instruction[1])...)
		}
	}
	return unique(all)
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
		case elsewhat().MatchString(word):
		case clean == "" || strings.ContainsAny(word, "$\"'\\"):
			return []string{"."}
		default:
			sources = append(sources, clean)
		}
	}
	return sources
}

// BasesOf are the images that a Dockerfile starts from, as far as it names them plainly.
func BasesOf(dockerfile []byte) (images []string) {
	var stages []string
	for line := range strings.Lines(continued().ReplaceAllString(string(dockerfile), " ")) {
		from := starting().FindStringSubmatch(strings.TrimSpace(line))
		if from == nil {
			continue
		}
		if image := from[1]; imageName().MatchString(image) && image != "scratch" && !slices.Contains(stages, strings.ToLower(image)) {
			images = append(images, image)
		}
		stages = append(stages, strings.ToLower(from[2]))
	}
	return unique(images)
}
