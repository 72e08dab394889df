package ledger

import (
	"errors"
	"fmt"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// Pair is an inner commit and its outer image.
type Pair struct {
	Inner, Outer gitops.OID
	Merged       bool         // the trees differ: the outer one also has the user's changes
	Supersedes   []gitops.OID // landed outer commits that this one undoes
}

const exactTree, mergedTree = "exact", "merged"

// Tree returns "exact" if both commits have the same tree, and "merged" otherwise.
func (p Pair) Tree() string {
	if p.Merged {
		return mergedTree
	}
	return exactTree
}

// line returns the pair's entry in the ledger file.
func (p Pair) line() string {
	line := string(p.Inner) + " " + string(p.Outer) + " " + p.Tree()
	for _, s := range p.Supersedes {
		line += " " + string(s)
	}
	return line + "\n"
}

// parse reads the entries of a ledger file. whole is false if a crash has torn the last line.
func parse(content string) (entries []Pair, whole bool, err error) {
	for line := range strings.Lines(content) {
		text, terminated := strings.CutSuffix(line, "\n")
		if !terminated {
			return entries, false, nil
		}
		p, err := parsePair(strings.Fields(text))
		if err != nil {
			return nil, false, fmt.Errorf("entry %q: %w", gitops.Text(text), err)
		}
		entries = append(entries, p)
	}
	return entries, true, nil
}

func parsePair(fields []string) (p Pair, err error) {
	if len(fields) < 3 || fields[2] != exactTree && fields[2] != mergedTree {
		return p, errors.New("want an inner commit, an outer commit, and exact or merged")
	}
	p.Merged = fields[2] == mergedTree
	var ids []gitops.OID
	for i, field := range fields {
		if i == 2 {
			continue
		}
		id, err := gitops.ParseOID(field)
		if err != nil {
			return p, err
		}
		ids = append(ids, id)
	}
	p.Inner, p.Outer, p.Supersedes = ids[0], ids[1], ids[2:]
	return p, nil
}
