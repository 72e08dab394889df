// Package ticks repeats the body of a loop at intervals.
package ticks

import "time"

// Each yields after each interval until done is closed. If a body takes longer, it leaves intervals out, as [time.Ticker] does.
func Each(done <-chan struct{}, interval time.Duration) func(yield func() bool) {
	return func(yield func() bool) {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for wait(done, tick) && yield() {
		}
	}
}

// NowAndEach yields at once, and then as [Each] does.
func NowAndEach(done <-chan struct{}, interval time.Duration) func(yield func() bool) {
	return func(yield func() bool) {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for yield() && wait(done, tick) {
		}
	}
}

// wait waits for the next tick. It returns false if done is closed.
func wait(done <-chan struct{}, tick *time.Ticker) bool {
	select {
	case <-done:
		return false
	case <-tick.C:
		return true
	}
}
