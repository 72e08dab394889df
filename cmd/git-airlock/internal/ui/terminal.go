package ui

import "golang.org/x/term"

// TerminalSize returns the size of the terminal fd, or 24 rows of 80 columns if the size cannot be read.
func TerminalSize(fd int) (rows, cols int) {
	cols, rows, err := term.GetSize(fd)
	if err != nil || rows <= 0 || cols <= 0 {
		return 24, 80
	}
	return rows, cols
}

// Columns returns the number of columns of the terminal fd.
func Columns(fd int) int {
	_, cols := TerminalSize(fd)
	return cols
}
