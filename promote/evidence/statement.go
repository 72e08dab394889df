package evidence

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
)

// NotesRef is the ref of the notes with statements. They are on commits and on trees.
const NotesRef = "refs/notes/airlock-evidence"

// The types of statements, see https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md.
const (
	statementType = "https://in-toto.io/Statement/v1"
	predicateType = "https://git-airlock.dev/containment/v1"
)

// The names of subjects, with the keys of their digests, see digest_set.md of in-toto.
const (
	commitName, commitDigest = "commit", "gitCommit"
	treeName, treeDigest     = "tree", "gitTree"
)

// Statement is an in-toto Statement v1 about one landed commit, or about the end of a session.
type Statement struct {
	Type          string    `json:"_type"`
	Subject       []Subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     Predicate `json:"predicate"`
}

// Subject is a commit or a tree.
type Subject struct {
	Name   string                `json:"name"`
	Digest map[string]gitops.OID `json:"digest"`
}

// Predicate has the facts of a statement. Its texts are escaped.
type Predicate struct {
	Session  string     `json:"session"`
	N        int        `json:"n"`        // number within the session, from 1
	Previous string     `json:"previous"` // [Digest] of the envelope before; empty for the first
	At       time.Time  `json:"at"`       // when the statement was made
	Branch   string     `json:"branch"`
	Base     gitops.OID `json:"base"` // where the session began
	// Key is the kind of the key that signs: [UserKey] or [SessionKey].
	Key     string  `json:"key"`
	Program Program `json:"program"`
	Prison  Prison  `json:"prison"`
	Landed  *Landed `json:"landed,omitempty"` // nil in a closing statement
	Closed  *Closed `json:"closed,omitempty"` // nil in all others
}

const (
	// UserKey is the key of the user's setting user.signingKey.
	UserKey = "user"
	// SessionKey is a key that the airlock made for one session, and that is gone after clear.
	SessionKey = "session"
)

// Program identifies the git-airlock that made a statement.
type Program struct {
	Version string `json:"version"`
	SHA256  string `json:"sha256"` // of its file; empty if it could not be read
}

// Prison describes the prison of the agent.
type Prison struct {
	Backend string   `json:"backend"`
	Runtime string   `json:"runtime,omitempty"`
	Network string   `json:"network"`
	UID     int      `json:"uid"` // of the agent, as the host sees it
	GID     int      `json:"gid"`
	Weaker  []string `json:"weaker"` // kinds of measures that the machine could not provide
	Memory  int64    `json:"memory"` // bytes
	CPUs    float64  `json:"cpus"`
	PIDs    int      `json:"pids"`
	// Kernel maps the names of what the kernel or the engine granted to values, for example the version of Landlock.
	Kernel map[string]string `json:"kernel,omitempty"`
}

// PatchLimit bounds the patches, in bytes, whose statement has a patch-id: the daemon has little memory. The statement about a larger patch is
// still found by commit and by tree.
const PatchLimit = 4 << 20

// Landed describes the landed commit.
type Landed struct {
	Inner     gitops.OID   `json:"inner"` // the agent's commit
	Tree      string       `json:"tree"`  // "exact" or "merged", as in the provenance note
	Without   []gitops.OID `json:"without"`
	PatchID   string       `json:"patchID,omitempty"` // of git patch-id --verbatim; empty without a patch, or with one beyond PatchLimit
	Policy    string       `json:"policy"`            // the gate's verdict, as in the provenance note
	Reached   *Reached     `json:"reached"`           // nil for a prison without a network
	Runs      []Run        `json:"runs"`              // those in which the commit landed
	Checks    []Check      `json:"checks"`
	Reviewers []Reviewer   `json:"reviewers"`
}

// Reached describes what was reached over the network before a commit.
type Reached struct {
	Note  string `json:"noteSHA256"` // of the note of refs/notes/airlock-egress
	Hosts []Host `json:"hosts"`
}

// Host is a host that was reached.
type Host struct {
	Name     string `json:"name"`
	Sent     int64  `json:"sent,omitempty"`     // bytes
	Received int64  `json:"received,omitempty"` // bytes
}

// Run is a run of a command in the prison. Its record has the same session and the same beginning.
type Run struct {
	Started time.Time `json:"started"`
	Record  string    `json:"record"` // the ref of its record; empty if the run had none when the statement was made
}

// Check is the result of a check of the tree.
type Check struct {
	Command string     `json:"command_sha256"`
	Tree    gitops.OID `json:"tree"`
	System  string     `json:"system"`
	Exit    int        `json:"exit"`
	At      time.Time  `json:"at"`
}

// Reviewer is somebody who approved the commit.
type Reviewer struct {
	By string    `json:"by"` // name and address
	At time.Time `json:"at"`
}

// Closed is the end of a session.
type Closed struct {
	Count int    `json:"count"` // of the statements before
	Head  string `json:"head"`  // [Digest] of the last of them
}

// New returns a statement about a commit and its tree. Its lists are there if they are empty, so that a reader can tell "none" from "not
// recorded", as in the statements of earlier programs.
func New(commit, tree gitops.OID, p Predicate) Statement {
	p.Prison.Weaker = append([]string{}, p.Prison.Weaker...)
	if p.Landed != nil {
		l := *p.Landed
		l.Without, l.Runs = append([]gitops.OID{}, l.Without...), append([]Run{}, l.Runs...)
		l.Checks, l.Reviewers = append([]Check{}, l.Checks...), append([]Reviewer{}, l.Reviewers...)
		if l.Reached != nil {
			l.Reached = &Reached{l.Reached.Note, append([]Host{}, l.Reached.Hosts...)}
		}
		p.Landed = &l
	}
	return Statement{Type: statementType, PredicateType: predicateType, Predicate: p, Subject: []Subject{
		{commitName, map[string]gitops.OID{commitDigest: commit}}, {treeName, map[string]gitops.OID{treeDigest: tree}},
	}}
}

// Commit returns the commit that the statement is about.
func (s Statement) Commit() gitops.OID { return s.Subject[0].Digest[commitDigest] }

// Tree returns the tree of that commit.
func (s Statement) Tree() gitops.OID { return s.Subject[1].Digest[treeDigest] }

// errOther reports a payload that is not a statement of this program.
var errOther = errors.New("not a statement of git-airlock about a commit and its tree")

// parseStatement reads a payload. It ignores fields that it does not know, as in-toto wants it.
func parseStatement(payload []byte) (s Statement, err error) {
	if err := json.Unmarshal(payload, &s); err != nil {
		return s, fmt.Errorf("statement: %w", err)
	}
	if s.Type != statementType || s.PredicateType != predicateType || len(s.Subject) != 2 || s.Subject[0].Name != commitName || s.Subject[1].Name != treeName {
		return s, errOther
	}
	for _, id := range []gitops.OID{s.Commit(), s.Tree()} {
		if _, err := gitops.ParseOID(string(id)); err != nil {
			return s, errOther
		}
	}
	p := s.Predicate
	if p.Session == "" || p.N < 1 || (p.N == 1) != (p.Previous == "") || (p.Landed == nil) == (p.Closed == nil) {
		return s, errOther
	}
	return s, nil
}
