// Package inner drives git inside a prison, where git can see only the inner repository.
//
// An agent wrote what git returns there. A [Workspace] limits and checks each answer, and ends a git process that
// waits for something that may never come, such as input from a FIFO in place of a file. No function here opens a
// workspace as a repository. [Limits] limit what is exported from it, and [Invalid] is the error for refused data.
package inner
