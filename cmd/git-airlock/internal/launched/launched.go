// Package launched remembers the command that start launched in an airlock: its terminal, and how people launch it again.
package launched

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
)

// fileName is the file of the [Note] in the host state of an airlock.
const fileName = "launched.json"

// Note describes the last launched command.
type Note struct {
	// Agent is the name that people typed, and empty for a command. Words are the arguments of the agent, or the command.
	Agent string   `json:"agent,omitempty"`
	Words []string `json:"words"`
	// Size is that of its terminal, zero if it was never known.
	Size prison.Size `json:"size"`
}

// Read returns the note in the host state of an airlock. Without a note, ok is false.
func Read(dir string) (n Note, ok bool, err error) {
	content, err := os.ReadFile(filepath.Join(dir, fileName))
	if errors.Is(err, fs.ErrNotExist) {
		return n, false, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &n)
	}
	return n, err == nil, err
}

// Write replaces the note.
func (n Note) Write(dir string) error {
	content, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return gitops.WriteFile(filepath.Join(dir, fileName), content, 0o600)
}

// Resize notes the present size of the terminal, if there is a note and a size.
func Resize(dir string, size prison.Size) error {
	n, ok, err := Read(dir)
	if err != nil || !ok || size == (prison.Size{}) || size == n.Size {
		return err
	}
	n.Size = size
	return n.Write(dir)
}

// Again returns the command line that launches the command again.
func (n Note) Again() string {
	words := []string{"git airlock start"}
	if n.Agent != "" {
		words = append(words, gitops.Pasteable(n.Agent))
	}
	if len(n.Words) > 0 {
		words = append(words, "--")
	}
	for _, w := range n.Words {
		words = append(words, gitops.Pasteable(w))
	}
	return strings.Join(words, " ")
}
