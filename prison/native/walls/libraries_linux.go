//go:build !cgo

package walls

// libraries is empty, since a program built without cgo is static.
var libraries []string
