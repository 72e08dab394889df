// Package watch guards the host against what runs in a prison: it stops a prison before its workspace fills a disk,
// and keeps the workspace closed to other users of the host.
//
// Measuring a workspace takes a walk through it; asking a file system what it has left takes nothing. [Guard] walks
// now and then if the file system has changed, and at once if it has grown by much. It waits neither for promotion nor
// for a walk: an agent decides how long both take.
package watch
