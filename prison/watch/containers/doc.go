// Package containers records the programs of a container that an engine runs on this machine's kernel. [Start] begins the record, and
// [Follow] adds a command to it.
//
// The engine starts each command, so the container's first process cannot give the commands the filter of package execs. Instead, each
// command begins with a program of a few instructions, the entrance. The entrance asks the kernel for a listener, and executes the command.
// This call of execve(2) waits for an answer like every later one. Meanwhile a process outside, the keeper, takes the listener out of the
// waiting process (pidfd_getfd(2)), and gives it to the recorder, which answers. No socket, no folder of the host and no program of the
// host is visible inside.
//
// The entrance is a file in the volume at /home that belongs to root, and that can be executed but not read. The kernel therefore protects
// a process that executes it from other processes of the same user (ptrace(2), "dumpable"), and no process inside can keep it from asking
// for a listener, or take its listener.
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
