// Package resident carries requests for checkpoints to a process that keeps the last one in memory, over a socket in the host state of an
// airlock. The other end runs as the same user and trusts the caller.
package resident

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/git-airlock/git-airlock/snapshot/checkpoint"
)

// Request is a request for a checkpoint.
type Request struct {
	Message []byte   // any bytes
	Words   [][]byte // of a command line, which follow the message; secrets in them are not stored
	OnlyNew bool     // make none if the newest checkpoint has the same state
	Whole   bool     // look at all files
	Most    int64    // bytes that the store may use
}

// Answer is a checkpoint that was made.
type Answer struct {
	Error                            string // no checkpoint was made
	Number                           int
	Tree, Git                        string
	Files, Special, Linked, Extended int
	Changing                         [][]byte
	Partial                          bool
	Took                             time.Duration
	Removed                          int // old ones, to make room
}

// AnswerOf returns the answer with a checkpoint.
func AnswerOf(t checkpoint.Taken) Answer {
	return Answer{Number: t.Number, Tree: t.Tree, Git: t.Git, Files: t.Files, Special: t.Special, Linked: t.Linked, Extended: t.Extended,
		Changing: Bytes(t.Changing), Partial: t.Partial, Took: t.Took}
}

// Taken returns the checkpoint of an answer.
func (a Answer) Taken() checkpoint.Taken {
	return checkpoint.Taken{Checkpoint: checkpoint.Checkpoint{Number: a.Number, IDs: checkpoint.IDs{Tree: a.Tree, Git: a.Git}},
		Files: a.Files, Special: a.Special, Linked: a.Linked, Extended: a.Extended, Changing: Texts(a.Changing), Partial: a.Partial, Took: a.Took}
}

// Bytes returns texts for JSON, which would change one that is not UTF-8.
func Bytes(texts []string) (all [][]byte) {
	for _, text := range texts {
		all = append(all, []byte(text))
	}
	return all
}

// Texts is the reverse of [Bytes].
func Texts(all [][]byte) (texts []string) {
	for _, text := range all {
		texts = append(texts, string(text))
	}
	return texts
}

const (
	socketName = "checkpoints.socket"
	// helloTime is how long the other end may take to begin an answer. It may be stopped.
	helloTime = 2 * time.Second
)

// at calls act with a path of the socket that is short enough for unix(7), however long the path of the folder is.
func at[T any](dir string, act func(path string) (T, error)) (t T, err error) {
	d, err := os.Open(dir)
	if err != nil {
		return t, err
	}
	defer d.Close()
	return act(filepath.Join("/proc/self/fd", strconv.Itoa(int(d.Fd())), socketName))
}

// Ask sends a request and returns its answer. It returns an error if nobody answers, or if no checkpoint could be made.
func Ask(ctx context.Context, dir string, q Request) (a Answer, err error) {
	c, err := at(dir, func(path string) (net.Conn, error) {
		return (&net.Dialer{Timeout: helloTime}).DialContext(ctx, "unix", path)
	})
	if err != nil {
		return a, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	silent := time.AfterFunc(helloTime, func() { c.Close() })
	defer silent.Stop()
	in := json.NewDecoder(c)
	var hello bool
	if err := errors.Join(json.NewEncoder(c).Encode(q), in.Decode(&hello)); err != nil {
		return a, err
	}
	silent.Stop()
	if err := in.Decode(&a); err != nil {
		return a, err
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

// Serve answers requests, one after the other, until ctx ends. Only one process may serve a folder.
func Serve(ctx context.Context, dir string, answer func(Request) Answer) error {
	l, err := at(dir, func(path string) (net.Listener, error) {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
		if err == nil {
			l.(*net.UnixListener).SetUnlinkOnClose(false) // the path is of a closed descriptor then
			err = os.Chmod(path, 0o600)
		}
		return l, err
	})
	if err != nil {
		return err
	}
	defer os.Remove(filepath.Join(dir, socketName))
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		c, err := l.Accept()
		if err != nil {
			return ctx.Err()
		}
		one(ctx, c, answer)
	}
}

func one(ctx context.Context, c net.Conn, answer func(Request) Answer) {
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	silent := time.AfterFunc(helloTime, func() { c.Close() })
	defer silent.Stop()
	var q Request
	if json.NewDecoder(c).Decode(&q) != nil || !silent.Stop() {
		return
	}
	out := json.NewEncoder(c)
	if out.Encode(true) != nil {
		return
	}
	out.Encode(answer(q)) //nolint:errcheck // the caller may be gone
}
