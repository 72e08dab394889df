//go:build !linux

package far

// Do calls do with the name. Git itself creates no longer paths there.
func Do(name string, do func(near string) error) error { return do(name) }
