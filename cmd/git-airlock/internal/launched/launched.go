// Package launched remembers the command that start launched in an airlock: its terminal, and how people launch it again.
package launched

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/durable"
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
	// Typed has the names of the [EndingKeys] that were typed at the terminals that had joined the command's.
	Typed []string `json:"typed,omitempty"`
}

// Read returns the note in the host state of an airlock. Without a note, ok is false.
func Read(dir string) (n Note, ok bool, err error) {
	ok, err = durable.ReadJSON(filepath.Join(dir, fileName), &n)
	return n, ok, err
}

// Write replaces the note.
func (n Note) Write(dir string) error {
	return durable.WriteJSON(filepath.Join(dir, fileName), n)
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

// Type notes that one of the [EndingKeys] is typed at a terminal that has joined the command's.
func Type(dir, name string) error {
	n, ok, err := Read(dir)
	if err != nil || !ok || slices.Contains(n.Typed, name) {
		return err
	}
	n.Typed = append(n.Typed, name)
	return n.Write(dir)
}

// EndedBy returns the name of the key that has ended the command, given the command's exit status, and an empty string if no key has.
func (n Note) EndedBy(status int) string {
	for _, key := range EndingKeys {
		if key.Status == status && slices.Contains(n.Typed, key.Name) {
			return key.Name
		}
	}
	return ""
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
