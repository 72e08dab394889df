// Package ui is how the program speaks: messages and hints, colours, the pager, progress, errors about the command line,
// the status as text, as a document and on a screen that changes.
//
// It knows nothing of airlocks but their names: what is shown is handed in as values.
package ui
