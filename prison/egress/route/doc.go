// Package route asks the kernel of this machine how it sends packets for an address.
package route
