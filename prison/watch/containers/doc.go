// Package containers records the programs of a container that an engine runs on this machine's kernel.
//
// The engine starts each command as a process of its own. The container's first process therefore cannot give them the filter of
// package execs. Instead, each command begins with a program of a few instructions, the entrance. It asks the kernel for a listener,
// and becomes the command. This call waits for an answer like every other one. Meanwhile a process outside, the keeper, takes the
// listener out of the waiting process (pidfd_getfd(2)), and gives it to the recorder, which answers. No socket, no folder of the
// host and no program of the host is visible inside.
//
// The entrance is a file of root's in the volume at /home, which can be executed but not read. So the kernel protects its processes
// from others of the same user (ptrace(2), "dumpable"), and nobody inside can keep it from asking, or take its listener.
//
// Reading the arguments of another user's process needs root. If the keeper ends, the recorder kills the container's first process,
// and if both are killed, no further program can start inside.
package containers

import "errors"

var (
	// ErrElsewhere is the error for a container whose processes are not visible here.
	ErrElsewhere = errors.New("the engine's processes are not visible on this machine")
	// ErrEnded is the error for a container whose first process, with which the record began, has ended.
	ErrEnded = errors.New("the container has ended, and so has the record of its programs")
)
