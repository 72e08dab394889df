//go:build !linux

package far

// reach calls do with the name. Git itself creates no longer paths there.
func reach(name string, do func(near string) error) error { return do(name) }
