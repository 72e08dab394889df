// Package watch protects the host against a running prison: it stops a prison before its workspace fills a disk, and
// keeps the workspace closed to other users of the host.
//
// To measure a workspace, a process must walk through all its files. To read the free space of a file system costs
// almost nothing. [Guard] therefore walks only now and then, after the file system has changed, and at once when it
// has grown by much. It waits neither for promotion nor for a walk, because an agent decides how long both take.
package watch
