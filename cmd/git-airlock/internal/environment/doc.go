// Package environment prepares the agent's environment. It reads the setup of a commit, which is its recipe or a replacement for
// it. It gets the user's consent, builds images, checks that tools are present, reads untracked files for the workspace, and runs
// startup commands.
package environment
