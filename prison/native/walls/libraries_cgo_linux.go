//go:build cgo

package walls

// libraries are the folders from which a dynamically linked program loads libraries, see ld.so(8).
var libraries = []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"}
