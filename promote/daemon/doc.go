// Package daemon decides when promotion cycles are made: whenever something has changed inside or outside. It wakes on
// inotify of the workspace's refs and of the outer HEAD, refs and index, and checks the latter once a second whatever
// inotify reports. An idle daemon starts no process.
//
// One daemon runs for each airlock. It holds an flock on a file of the host state for its life. The number in that file helps
// people; the lock is the truth. stop opens a pidfd for the number, checks the lock again, and signals
// through the descriptor. There is no socket, since nothing has to be asked: results are in refs,
// notes and one file, and promote and clear run the same code in the foreground under the same lock. A
// socket would be another protocol, with a path of at most 108 bytes, and would stay behind after kill
// -9.
//
// A new daemon reads the record once more under the lock, and ends if the airlock is stopped; stop
// looks for a daemon before and after it writes the record. So no daemon stays that a status at the
// same time brought back.
//
// Files that a hold names, and the settings, are checked as well: some file systems are silent. The guard of the
// prison (package watch) has a clock and an exporter of its own, since the agent decides how long a cycle takes.
package daemon
