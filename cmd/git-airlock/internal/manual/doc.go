// Package manual contains the program's help: the text of -h, the manual pages and the completions for shells. All are made from
// one description of the command line, a [Page].
package manual
