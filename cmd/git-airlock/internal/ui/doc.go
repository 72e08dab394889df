// Package ui prints to the user: messages and hints, colours, the pager, progress, errors about the command line, and the
// status as text, as a JSON document and as a live view.
//
// It does not read the state of airlocks. Callers pass in the values to print.
package ui
