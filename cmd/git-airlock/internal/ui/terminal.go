package ui

import "golang.org/x/term"

// TerminalSize returns the size of the terminal fd: 24 rows of 80 columns where it cannot be read.
func TerminalSize(fd int) (rows, cols int) {
	cols, rows, err := term.GetSize(fd)
	if err != nil || rows <= 0 || cols <= 0 {
		return 24, 80
	}
	return rows, cols
}

// Columns returns how wide the terminal fd is.
func Columns(fd int) int {
	_, cols := TerminalSize(fd)
	return cols
}
