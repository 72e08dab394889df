// Package treelink reads the links of a tree. It finds out where they lead, and under which other names they make a path of
// the tree known.
package treelink
