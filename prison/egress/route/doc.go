// Package route asks the kernel whether an address is this machine's own, which a prison must not reach.
package route
