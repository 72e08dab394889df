// Package agents knows coding agents by name: the program and where this machine has it, the hosts that it talks to, the arguments
// with which it works without questions, and the files that it wants in its home.
//
// A [Profile] is a description. [Find] looks for the program on this machine, and [Found.In] is the command for a prison. [Seed]
// writes a profile's files into the home of a running prison. The package starts no program of the host: an agent runs in a prison
// only.
package agents
