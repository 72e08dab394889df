package recipe

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops/bounded"
	"github.com/git-airlock/git-airlock/words"
)

// DevcontainerName is the path of a development container's description, which replaces a missing recipe.
const DevcontainerName = ".devcontainer/devcontainer.json"

// devcontainer holds the supported keys of such a description.
type devcontainer struct {
	Image string `json:"image"`
	Build struct {
		Dockerfile string `json:"dockerfile"`
		Context    string `json:"context"`
	} `json:"build"`
	ContainerEnv      map[string]string `json:"containerEnv"`
	PostCreateCommand any               `json:"postCreateCommand"`
}

// ParseDevcontainer makes a recipe from the description of a development container. ignored lists the names of the
// keys that it does not support.
func ParseDevcontainer(content []byte) (r Recipe, ignored []string, err error) {
	if len(content) > MaxSize {
		return Recipe{}, nil, wrong("more than %d bytes", MaxSize)
	}
	content = plainJSON(content)
	if err := bounded.Usual.JSON(content); err != nil {
		return Recipe{}, nil, Errors{tooMuch(DevcontainerName, err)}
	}
	var d devcontainer
	if err := json.Unmarshal(content, &d); err != nil {
		return Recipe{}, nil, wrongJSON(content, err)
	}
	if r.OS, err = d.system(); err != nil {
		return Recipe{}, nil, err
	}
	ignored = ignoredKeys(content)
	if r.Startup, err = d.startup(); err != nil {
		return Recipe{}, nil, wrong("postCreateCommand: %v", err)
	}
	set, unusable, err := d.variables()
	if err != nil {
		return Recipe{}, nil, err
	}
	r.Env.Set = set
	if d.Image == "" && d.Build.Dockerfile == "" && len(d.ContainerEnv) == 0 && len(r.Startup) == 0 {
		return Recipe{}, nil, wrong("it has no image, build.dockerfile, containerEnv or postCreateCommand")
	}
	return r, append(ignored, unusable...), nil
}

// wrongJSON returns the error for a description that cannot be decoded, with its line.
func wrongJSON(content []byte, err error) error {
	offset, message := int64(0), err.Error()
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = syntax.Offset
	}
	if other, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		offset, message = other.Offset, "want an object"
		if other.Type.Kind() == reflect.String {
			message = "want a text"
		}
		if other.Field != "" {
			message = other.Field + ": " + message
		}
		kind, _, _ := strings.Cut(other.Value, " ")
		message += map[string]string{"array": ", not a list", "string": ", not a text", "object": ", not an object",
			"number": ", not a number", "bool": ", not true or false"}[kind]
	}
	line := 1 + bytes.Count(content[:min(int(offset), len(content))], []byte("\n"))
	return Errors{{File: DevcontainerName, Line: line, Message: printable(message)}}
}

// wrong returns an error about the description.
func wrong(format string, args ...any) error {
	return Mistake(DevcontainerName, format, args...)
}

// system returns the image or the Dockerfile of the description.
func (d devcontainer) system() (system OS, err error) {
	switch hasImage, hasFile := d.Image != "", d.Build.Dockerfile != ""; {
	case hasImage && hasFile:
		return OS{}, wrong("there is both an image and a build.dockerfile; one of the two is what to start from")
	case hasImage && !isImageName(d.Image):
		return OS{}, wrong("image: %s is not the name of a container image", quote(d.Image))
	case hasImage:
		system.Base = d.Image
	case hasFile:
		folder := path.Dir(DevcontainerName)
		system.Dockerfile, system.Context = path.Join(folder, d.Build.Dockerfile), path.Join(folder, d.Build.Context)
		if !inRepository(system.Dockerfile) {
			return OS{}, wrong("build.dockerfile: %s is not in the repository", quote(d.Build.Dockerfile))
		}
		if system.Context == "." {
			system.Context = ""
		} else if !inRepository(system.Context) {
			return OS{}, wrong("build.context: %s is not in the repository", quote(d.Build.Context))
		}
	}
	return system, nil
}

// variables returns the variables of the description, and the names of those that it does not support: those that the
// prison sets itself, and those that refer to a variable of the host or the editor.
func (d devcontainer) variables() (set map[string]string, ignored []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(d.ContainerEnv)) {
		value := d.ContainerEnv[name]
		switch {
		case !variableName(name) || strings.Contains(value, "\x00") || len(value) > maxValue:
			return nil, nil, wrong("containerEnv: %s is not a valid variable", quote(name))
		case slices.Contains(fixed, name) || strings.Contains(value, "${"):
			ignored = append(ignored, "containerEnv."+name)
		default:
			if set == nil {
				set = map[string]string{}
			}
			set[name] = value
		}
	}
	return set, ignored, nil
}

// startup reads postCreateCommand. It may be a line for a shell, a list of words, or several of these by name.
func (d devcontainer) startup() (commands []string, err error) {
	named := map[string]any{"": d.PostCreateCommand}
	if several, ok := d.PostCreateCommand.(map[string]any); ok {
		named = several
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		line := ""
		switch command := named[name].(type) {
		case nil:
		case string:
			line = command
		case []any:
			for _, word := range command {
				text, ok := word.(string)
				if !ok {
					return nil, errors.New("a word is not a text")
				}
				line += " " + words.ShellQuote(text)
			}
			line = strings.TrimSpace(line)
		default:
			return nil, errors.New("is neither a text nor a list")
		}
		if strings.Contains(line, "\x00") || len(line) > maxCommand {
			return nil, errors.New("a command is too long or contains a zero byte")
		}
		if strings.TrimSpace(line) != "" {
			commands = append(commands, line)
		}
	}
	return commands, nil
}

// ignoredKeys returns the names of the keys that [devcontainer] does not support, sorted.
func ignoredKeys(content []byte) (names []string) {
	var all map[string]json.RawMessage
	var build struct{ Build map[string]json.RawMessage }
	if json.Unmarshal(content, &all) != nil || json.Unmarshal(content, &build) != nil {
		return nil
	}
	taken := []string{"image", "build", "containerEnv", "postCreateCommand", "$schema", "name"} // the last two have no effect on the environment
	for name := range all {
		if !slices.Contains(taken, name) {
			names = append(names, name)
		}
	}
	for name := range build.Build {
		if name != "dockerfile" && name != "context" {
			names = append(names, "build."+name)
		}
	}
	slices.Sort(names)
	return names
}

// plainJSON replaces comments, and commas before a closing bracket, by spaces. Line numbers stay the same.
func plainJSON(content []byte) []byte {
	out := bytes.Clone(content)
	comma := -1 // position of a comma that only space has followed so far
	for i := 0; i < len(out); i++ {
		switch c := out[i]; {
		case c == '"':
			comma = -1
			for i++; i < len(out) && out[i] != '"'; i++ {
				if out[i] == '\\' {
					i++
				}
			}
		case c == '/' && i+1 < len(out) && (out[i+1] == '/' || out[i+1] == '*'):
			end := []byte("\n")
			if out[i+1] == '*' {
				end = []byte("*/")
			}
			length := len(out) - i
			if at := bytes.Index(out[i+2:], end); at >= 0 {
				length = at + 2 + len(end)
			}
			for j := range length {
				if out[i+j] != '\n' {
					out[i+j] = ' '
				}
			}
			i += length - 1
		case c == ',':
			comma = i
		case c == '}' || c == ']':
			if comma >= 0 {
				out[comma] = ' '
			}
			comma = -1
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			comma = -1
		}
	}
	return out
}
