// Package environment makes what the agent works in: it reads the setup of a commit (its recipe, or what stands in for it), gets
// the user's consent to what only they can give, builds images, checks that tools are there, reads the files that go in
// beside the snapshot, and runs the commands of the startup.
package environment
