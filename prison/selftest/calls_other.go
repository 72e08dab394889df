//go:build !linux

package selftest

// calls are known on the system whose they are.
var calls []call
