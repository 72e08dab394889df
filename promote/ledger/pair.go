package ledger

import (
	"encoding/hex"
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
	Without      []gitops.OID // inner commits before this one that were left out when it was built, unless an earlier pair names them
	// Aside reports that the outer commit was built on commits that the agent made later than the inner commit. The agent's next commits are
	// not built on it.
	Aside bool
	// Synced reports that the inner commit is not the agent's. It stands for commits of the user, and the outer commit is the newest of these.
	// The ledger's file has no such pairs, see [Synced].
	Synced bool
	// Copy is the synced commit that the agent has amended or rebased into the inner commit, or empty. The changes of Copy are the user's.
	Copy gitops.OID
	// From is the line of the inner commit if the user has promoted another line than main, and main did not have the commit: see [LineOf]. It is
	// empty for the line of main, whose commits do not count from this one, and do not undo it.
	From string
	// Joined reports that main has had the inner commit since. It counts as one of main's.
	Joined bool
}

const exactTree, mergedTree = "exact", "merged"

// In an entry, asideWord stands for Aside, and joinedWord for Joined. withoutMark precedes a commit of Without, copyMark precedes Copy, and fromMark
// precedes From, which is encoded, because an entry ends each word at a space.
const asideWord, joinedWord, withoutMark, copyMark, fromMark = "aside", "joined", "-", "=", "from="

// Tree returns "exact" if both commits have the same tree, and "merged" otherwise.
func (p Pair) Tree() string {
	if p.Merged {
		return mergedTree
	}
	return exactTree
}

// MarshalText returns the pair's entry in the ledger file, without a newline.
func (p Pair) MarshalText() ([]byte, error) { return []byte(p.entry()), nil }

// UnmarshalText reads an entry of the ledger file.
func (p *Pair) UnmarshalText(text []byte) (err error) {
	*p, err = parsePair(strings.Fields(string(text)))
	return err
}

// entry returns the pair's line in the ledger file, without a newline.
func (p Pair) entry() string {
	line := string(p.Inner) + " " + string(p.Outer) + " " + p.Tree()
	if p.Aside {
		line += " " + asideWord
	}
	for _, s := range p.Supersedes {
		line += " " + string(s)
	}
	for _, w := range p.Without {
		line += " " + withoutMark + string(w)
	}
	if p.Copy != "" {
		line += " " + copyMark + string(p.Copy)
	}
	if p.From != "" {
		line += " " + fromMark + hex.EncodeToString([]byte(p.From))
	}
	if p.Joined {
		line += " " + joinedWord
	}
	return line
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
	if p.Inner, err = gitops.ParseOID(fields[0]); err != nil {
		return p, err
	}
	if p.Outer, err = gitops.ParseOID(fields[1]); err != nil {
		return p, err
	}
	for _, field := range fields[3:] {
		name, without := strings.CutPrefix(field, withoutMark)
		name, copies := strings.CutPrefix(name, copyMark)
		from, line := strings.CutPrefix(field, fromMark)
		if line {
			name, err := hex.DecodeString(from)
			if p.From = string(name); err != nil {
				return p, err
			}
		}
		p.Aside, p.Joined = p.Aside || field == asideWord, p.Joined || field == joinedWord
		if line || field == asideWord || field == joinedWord {
			continue
		}
		id, err := gitops.ParseOID(name)
		if err != nil {
			return p, err
		}
		switch {
		case without:
			p.Without = append(p.Without, id)
		case copies:
			p.Copy = id
		default:
			p.Supersedes = append(p.Supersedes, id)
		}
	}
	return p, nil
}

// Inners returns the inner commits of pairs.
func Inners(pairs []Pair) (ids []gitops.OID) {
	for _, p := range pairs {
		ids = append(ids, p.Inner)
	}
	return ids
}

// Outers returns the outer commits of pairs.
func Outers(pairs []Pair) (ids []gitops.OID) {
	for _, p := range pairs {
		ids = append(ids, p.Outer)
	}
	return ids
}
