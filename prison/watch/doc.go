// Package watch protects the host against a running prison: it stops a prison before its workspace fills a disk, and
// keeps the workspace closed to other users of the host.
//
// Measuring a workspace needs a walk through all its files. Reading the free space of a file system costs almost nothing. A [Guard]
// therefore reads the free space often, and starts a walk only now and then after it has changed, or at once when the file system has grown
// by much. It waits neither for promotion nor for a walk, because an agent decides how long both take. Begin with [Guard.Run].
package watch
