// Package hosttree removes a tree of files on the host's disk that somebody else, such as an agent, has created.
package hosttree
