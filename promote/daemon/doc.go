// Package daemon decides when promotion cycles are made: whenever something has changed inside or outside. A daemon waits for inotify events
// on the workspace's refs and on the outer HEAD, refs and index. It also checks the outer files once a second, because inotify can miss
// changes. An idle daemon starts no process.
//
// One daemon runs for each airlock. It holds an flock on a file of the host state for its life. The process id in
// that file is only a hint, and the lock decides. To stop a daemon, stop opens a pidfd for the process id, checks the
// lock again, and signals through the descriptor. This package has no socket, because no process has to ask for
// a cycle. Its results are in refs, notes and one file, and promote and clear run the same code in the foreground
// under the same lock. A socket would need another protocol and a path of at most 108 bytes, and would stay behind
// after kill -9.
//
// A new daemon reads the record again under the lock, and ends if the airlock is stopped. stop looks for a daemon
// before and after it writes the record. So a daemon that a status started at the same time does not survive.
//
// The daemon also polls the settings, the files of the user's rules and the files that a hold names, because some file
// systems send no events. While the gate holds paths, it polls the ignore files in the folders above them. The
// guard of the prison (package watch) has its own clock and its own exporter, since the agent decides how long a
// cycle takes.
package daemon
