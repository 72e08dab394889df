// Package manual explains the program: the text of -h, the manual pages and the completions for shells, all made from one
// description of the command line, a [Page].
package manual
