// Package launched remembers the command that start launched in an airlock: its terminal, and how people launch it again.
package launched

import (
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
	// Size is the size of the command's terminal, zero if it was never known.
	Size prison.Size `json:"size"`
}

// Read returns the note in the host state of an airlock. Without a note, ok is false.
func Read(dir string) (n Note, ok bool, err error) {
	ok, err = gitops.ReadJSON(filepath.Join(dir, fileName), &n)
	return n, ok, err
}

// Write replaces the note.
func (n Note) Write(dir string) error {
	return gitops.WriteJSON(filepath.Join(dir, fileName), n)
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
