// Package launched remembers the command that start launched in an airlock: its terminal, and how people launch it again.
package launched

import (
	"context"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/durable"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// fileName is the file of the [Note] in the host state of an airlock.
const fileName = "launched.json"

// lockName is the file that processes lock while they change the [Note].
const lockName = "launched.lock"

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
func (n Note) Write(ctx context.Context, of airlock.Store, id string) error {
	return locked(ctx, of, id, n.write)
}

func (n Note) write(dir string) error { return durable.WriteJSON(filepath.Join(dir, fileName), n) }

// locked calls a function with the host state of an airlock. Several terminals can join one command, and another command can be launched
// meanwhile. The lock keeps them from replacing each other's notes. A process that writes to a slow disk can hold it for seconds.
func locked(ctx context.Context, of airlock.Store, id string, do func(dir string) error) error {
	unlock, err := of.LockFile(ctx, id, lockName)
	if err != nil {
		return err
	}
	defer unlock()
	return do(of.Dir(id))
}

// change replaces the note by the result of a function, if there is a note and the function returns true. An airlock that was cleared has none.
func change(ctx context.Context, of airlock.Store, id string, to func(*Note) bool) error {
	err := locked(ctx, of, id, func(dir string) error {
		n, ok, err := Read(dir)
		if err != nil || !ok || !to(&n) {
			return err
		}
		return n.write(dir)
	})
	return gitops.Unless(err, fs.ErrNotExist)
}

// Resize notes the present size of the terminal, if there is a note and a size.
func Resize(ctx context.Context, of airlock.Store, id string, size prison.Size) error {
	return change(ctx, of, id, func(n *Note) bool {
		same := size == prison.Size{} || size == n.Size
		n.Size = size
		return !same
	})
}

// keyTime is the longest wait of [Type] for another process, because a key that is typed must reach the command.
const keyTime = time.Second

// Type notes that one of the [EndingKeys] is typed at a terminal that has joined the command's.
func Type(ctx context.Context, of airlock.Store, id, name string) error {
	ctx, cancel := context.WithTimeout(ctx, keyTime)
	defer cancel()
	return typed(ctx, of, id, name)
}

// typed is as [Type], but waits as long as ctx permits.
func typed(ctx context.Context, of airlock.Store, id, name string) error {
	return change(ctx, of, id, func(n *Note) bool {
		known := slices.Contains(n.Typed, name)
		n.Typed = append(n.Typed, name)
		return !known
	})
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
