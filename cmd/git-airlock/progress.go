package main

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// What a step has to take before it is worth a line on a terminal, and how often that line changes.
const (
	progressAfter = 300 * time.Millisecond
	progressEvery = 100 * time.Millisecond
)

// progressOf shows on a terminal how far a long step is; elsewhere it shows nothing. done takes the line away.
func progressOf(what string) (progress func(done, all int), done func()) {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return nil, func() {}
	}
	var lock sync.Mutex
	next, shown := time.Now().Add(progressAfter), false
	progress = func(done, all int) {
		lock.Lock()
		defer lock.Unlock()
		if now := time.Now(); now.After(next) && all > 0 {
			fmt.Fprintf(os.Stderr, "\rairlock: %s: %3d%% (%d of %d)", what, 100*done/all, done, all)
			next, shown = now.Add(progressEvery), true
		}
	}
	return progress, func() {
		lock.Lock()
		defer lock.Unlock()
		if shown {
			fmt.Fprint(os.Stderr, "\r\x1b[K")
		}
	}
}
