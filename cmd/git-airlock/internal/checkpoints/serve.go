package checkpoints

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/checkpoints/resident"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/snapshot/checkpoint"
)

const (
	// serveTime bounds one checkpoint.
	serveTime = 10 * time.Minute
	// saveAfter is how long after the last checkpoint the server writes what it has in memory to a file, for other processes.
	saveAfter = time.Second
	// restAfter is how long after that the server ends its prison and frees its memory.
	restAfter = 10 * time.Minute
	// watchPause is how long the server waits before it tries again to watch the folders, after an error.
	watchPause = 10 * time.Second
	// mostMemory bounds the memory for the files' names and states. Two walks may need as much at a time. If a workspace needs more,
	// the commands make the checkpoints themselves.
	mostMemory = 48 << 20
)

// server makes checkpoints. Between two checkpoints it keeps the state of the last one, a prison, and the watch of the folders.
type server struct {
	Keeper
	store  *checkpoint.Store
	recent checkpoint.Recent
	inside prisons.Files
	end    context.CancelFunc // ends the prison; nil if there is none
	tree   prison.Tree        // nil if the folders are not watched
	failed time.Time          // when watching them last failed
	timer  *time.Timer
	saved  bool
	most   int64 // the bytes that the store may use, from the last request
}

// Serve makes checkpoints for other processes until ctx ends. It waits while another process serves.
func (k Keeper) Serve(ctx context.Context) error {
	unlock, err := k.Prisons.Store.LockFile(ctx, k.Record.ID, "checkpoints.server.lock")
	if err != nil {
		return err
	}
	defer unlock()
	s := &server{Keeper: k, saved: true, timer: time.NewTimer(restAfter)}
	defer s.release()
	requests, answers := make(chan resident.Request), make(chan resident.Answer)
	served := make(chan error, 1)
	go func() {
		served <- resident.Serve(ctx, k.Prisons.Store.Dir(k.Record.ID), func(q resident.Request) resident.Answer {
			requests <- q
			return <-answers
		})
	}()
	for {
		select {
		case err := <-served:
			return err
		case q := <-requests:
			answers <- s.answer(ctx, q)
			s.timer.Reset(saveAfter)
		case <-s.timer.C:
			s.idle(ctx)
		}
	}
}

// idle is called when no request has come for some time. The first call saves what the server has in memory, and the next one
// releases everything.
func (s *server) idle(ctx context.Context) {
	if s.saved {
		s.release()
		return
	}
	err := s.locked(ctx, func() error {
		removed, trimErr := s.store.Trim()
		s.noteRemoved(removed)
		return errors.Join(s.store.Save(&s.recent), trimErr)
	})
	if err != nil {
		s.recent = checkpoint.Recent{}
	}
	s.saved = true
	s.timer.Reset(restAfter)
}

// release ends the prison and frees the memory.
func (s *server) release() {
	s.unwatch()
	s.endPrison()
	if s.store != nil {
		s.store.Close() // releases only descriptors
		s.store = nil
	}
	s.recent = checkpoint.Recent{}
}

func (s *server) unwatch() {
	if s.tree != nil {
		s.tree.Close() // the other end notices
		s.tree = nil
	}
}

func (s *server) endPrison() {
	if s.end != nil {
		s.end()
		s.inside.Close() // its error only reports that the prison was ended
		s.end = nil
	}
}

func (s *server) answer(ctx context.Context, q resident.Request) resident.Answer {
	begun := s.Now()
	s.most = q.Most
	var t checkpoint.Taken
	var removed int // old checkpoints
	err := s.locked(ctx, func() (err error) {
		if t, err = s.serve(ctx, q); err != nil {
			return err
		}
		remove := s.store.Expire
		if s.store.Overfull() {
			remove = s.store.Trim
		}
		removed, err = remove()
		s.noteRemoved(removed)
		return err
	})
	if err != nil { // the command that has asked makes the checkpoint itself, in a prison of its own
		s.recent = checkpoint.Recent{}
		s.endPrison()
		return resident.Answer{Error: err.Error()}
	}
	s.saved = false
	t.Took = s.Now().Sub(begun)
	a := resident.AnswerOf(t)
	a.Removed = removed
	return a
}

// locked opens the store and calls act. No other process uses the store meanwhile.
func (s *server) locked(ctx context.Context, act func() error) error {
	unlock, err := s.Prisons.Store.LockFile(ctx, s.Record.ID, lockName)
	if err != nil {
		return err
	}
	defer unlock()
	if s.store != nil {
		err = s.store.Reopen(s.most)
	} else if s.store, err = checkpoint.OpenStore(s.dir(), s.most); err != nil {
		err = fmt.Errorf("open the checkpoints: %w", err)
	}
	if err != nil {
		return err
	}
	return act()
}

func (s *server) serve(ctx context.Context, q resident.Request) (t checkpoint.Taken, err error) {
	if s.end == nil {
		inside, end := context.WithCancel(ctx)
		if s.inside, err = s.Prisons.OpenFiles(inside, s.Record, false); err != nil {
			end()
			return t, err
		}
		s.end = end
	}
	bound := time.AfterFunc(serveTime, s.end)
	defer bound.Stop()
	touched, hinted := s.touched(ctx)
	return s.store.Take(ctx, s.inside.Client, checkpoint.Options{
		Message: textOf(q), Now: s.Now(), OnlyNew: q.OnlyNew, Memory: mostMemory,
		Recent: &s.recent, Hinted: hinted && !q.Whole, Touched: touched,
	})
}

// touched returns the folders that have changed since the last call. known is false if the folders were not watched all the time. Then
// touched begins to watch them.
func (s *server) touched(ctx context.Context) (paths []string, known bool) {
	if s.tree != nil {
		if paths, err := s.tree.Touched(); err == nil {
			return paths, true
		}
		s.unwatch()
	}
	if s.Now().Sub(s.failed) < watchPause {
		return nil, false
	}
	if tree, err := s.Prisons.WatchTree(ctx, s.Record, s.inside); err == nil {
		s.tree = tree
	} else {
		s.failed = s.Now()
	}
	return nil, false
}
