package gitops

// merger merges trees without a git process. git merge-tree is the reference: a merger gives the tree that it would
// give, or leaves the merge to it.
type merger interface {
	// merge returns an empty tree if the merge is left to git.
	merge(m Merge) (OID, error)
	close() error
}
