// Package hosttree removes trees of files that somebody else has created on the host's disk.
package hosttree
