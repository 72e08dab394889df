package evidence

import (
	"errors"
	"fmt"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/words"
)

// Level is the kind of the party that vouches for the evidence.
type Level string

const (
	// LevelSelf is a key of the machine that made the statement, which nobody else vouches for.
	LevelSelf Level = "self"
	// LevelTeam is a key in the list of signers.
	LevelTeam Level = "team"
	// LevelCI is a key in the list of signers, or the machine's own key, for a commit whose check passed again in CI.
	LevelCI Level = "ci"
)

// Commit is a commit to verify.
type Commit struct {
	ID, Tree gitops.OID
	Patch    func() string // computes the patch-id
	// Again reports that the check of the tree passed on this machine in CI.
	Again bool
}

// Verdict is the result of verifying a commit.
type Verdict struct {
	Commit
	By          string // how the statement was found, such as [ByTree]; empty if there is no statement
	Statement   Statement
	Digest      string // of the envelope
	Level       Level
	Who         string // the principals of the key, if it is in the list of signers
	Fingerprint string // of the key
	Chain       Chain

	// Faults are the reasons why the commit is not verified.
	Faults []error

	signed   bool  // the signature is right
	listed   bool  // the verifier has a list of signers
	unlisted error // the reason why the key does not count in the list
}

// Verified reports whether the commit has evidence that meets all requirements.
func (v Verdict) Verified() bool { return len(v.Faults) == 0 }

// Missing reports whether the commit is not verified only because something is missing.
func (v Verdict) Missing() bool {
	return len(v.Faults) > 0 && !slices.ContainsFunc(v.Faults, func(err error) bool { return !Missing(err) })
}

// Verifier verifies commits.
type Verifier struct {
	Store *Store
	// Signers is the list of the keys that count. If it is nil, the key of a statement is the machine's own.
	Signers  Signers
	Required []Requirement

	chains map[string]chained
}

type chained struct {
	chain Chain
	err   error
}

// Verify returns the verdict on a commit. If several statements are about it, the best one counts, however it was found: everybody who can push
// notes can add a statement with another key, also to the note of a commit whose evidence is on its tree.
func (v *Verifier) Verify(c Commit) Verdict {
	var best Verdict
	for e, by := range v.Store.Find(c.ID, c.Tree, c.Patch) {
		if next := v.judge(c, e, by); best.By == "" || slices.Compare(next.rank(), best.rank()) < 0 {
			best = next
		}
		if best.Verified() && (best.Level != LevelSelf || !best.listed) {
			return best
		}
	}
	if best.By == "" {
		return Verdict{Commit: c, Faults: []error{v.none(c)}}
	}
	return best
}

// rank returns numbers that compare verdicts on one commit: the smaller they are, the better the evidence. If no statement meets all requirements,
// the one with the key in the list of signers counts, because the faults of a stranger's statement say nothing about the commit.
func (v Verdict) rank() []int {
	wrong := 0
	for _, err := range v.Faults {
		if !Missing(err) {
			wrong++
		}
	}
	number := map[bool]int{true: 1}
	return []int{number[!v.Verified()], number[!v.signed], number[v.Level == LevelSelf], wrong, len(v.Faults)}
}

// none returns the error for a commit without a statement.
func (v *Verifier) none(c Commit) error {
	if err := errors.Join(v.Store.Broken(c.ID), v.Store.Broken(c.Tree)); err != nil {
		return fmt.Errorf("its note: %s", words.OneLine(err))
	}
	return missing("no evidence")
}

func (v *Verifier) judge(c Commit, e Envelope, by string) Verdict {
	d := Verdict{Commit: c, By: by, Statement: e.Statement, Digest: e.Digest, Level: LevelSelf, Fingerprint: e.Fingerprint(), listed: v.Signers != nil}
	if err := e.Verify(); err != nil {
		d.Faults = []error{err}
		return d
	}
	d.signed = true
	if d.Who, d.unlisted = v.Signers.Who(e.Key, e.Statement.Predicate.At); d.Who != "" {
		d.Level = LevelTeam
	}
	if c.Again && (d.Who != "" || !d.listed) {
		d.Level = LevelCI
	}
	chain := v.chain(e)
	if d.Chain = chain.chain; chain.err != nil {
		d.Faults = append(d.Faults, chain.err)
	}
	for _, r := range v.Required {
		if err := r.met(d); err != nil {
			if Missing(err) {
				err = missing("%s: %v", r, err)
			} else {
				err = fmt.Errorf("%s: %w", r, err)
			}
			d.Faults = append(d.Faults, err)
		}
	}
	return d
}

// chain checks the chain of an envelope, once for each session and key.
func (v *Verifier) chain(e Envelope) chained {
	if v.chains == nil {
		v.chains = map[string]chained{}
	}
	id := e.Statement.Predicate.Session + " " + e.Fingerprint()
	c, known := v.chains[id]
	if !known {
		c.chain, c.err = v.Store.Chain(e)
		v.chains[id] = c
	}
	return c
}
