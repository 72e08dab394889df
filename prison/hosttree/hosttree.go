// Package hosttree removes what somebody else has made on the host's disk.
package hosttree
