// Package airlock keeps the record of a repository's airlocks.
//
// An airlock binds one workspace to one outer branch, from start to clear. Its [Record] is the file
// state.json in the host state, which only this package reads and writes; the [Store] finds
// records, creates them and removes every trace of them.
package airlock

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/identity"
)

// version of the record's format.
const version = 1

// Phase is how far an airlock's life has come.
type Phase string

const (
	// Starting is an airlock whose first start has not ended; if nobody is at it, it is a leftover.
	Starting Phase = "starting"
	// Running is an airlock whose prison and daemon should be there.
	Running Phase = "running"
	// Stopped is an airlock whose workspace is kept and whose prison is not.
	Stopped Phase = "stopped"
	// Clearing is an airlock that is being removed; whoever finds it so goes on removing.
	Clearing Phase = "clearing"
)

// Limits are the prison's, as they were asked for and given.
type Limits struct {
	Memory int64   `json:"memory"` // bytes
	CPUs   float64 `json:"cpus"`   // cores
	PIDs   int     `json:"pids"`   // processes and threads
}

// Isolation is what the prison of an airlock gives.
type Isolation struct {
	Network string     `json:"network"`
	Runtime string     `json:"runtime"`
	Limits  Limits     `json:"limits"`
	Weaker  []Weakness `json:"weaker"`
}

// Weakness is a measure of isolation that could not be given.
type Weakness struct {
	Kind string `json:"kind"` // for programs; empty in what was written before there were kinds
	Text string `json:"text"` // for people
}

// UnmarshalJSON reads what was written before there were kinds, too.
func (w *Weakness) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &w.Text) == nil {
		return nil
	}
	type plain Weakness
	return json.Unmarshal(text, (*plain)(w))
}

// Tool is something of the host's that the prison may use besides the system: shared read-only under a name.
type Tool struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// Setup is what came of a repository's own description of its environment when the airlock was last started.
type Setup struct {
	File   string   `json:"file"`   // where it is, from the top of the work tree
	Digest string   `json:"digest"` // SHA-256 of it and of what it names
	Env    []string `json:"env"`    // what it puts into the environment
	Names  []string `json:"names"`  // paths that it names
}

// Record is what is known of one airlock.
type Record struct {
	Version   int               `json:"version"`
	ID        string            `json:"id"`
	Session   string            `json:"session"`
	Phase     Phase             `json:"phase"`
	Branch    string            `json:"branch"`    // full name of the outer branch
	Worktree  string            `json:"worktree"`  // id within the repository, empty for the main one
	Top       string            `json:"top"`       // where that worktree was when it was last looked at
	Home      string            `json:"home"`      // identity of the repository; empty in records of old
	Workspace string            `json:"workspace"` // name of the workspace's folder
	Inside    bool              `json:"inside"`    // the workspace is in the work tree, not in the host state
	Format    string            `json:"format"`    // object format
	Base      gitops.OID        `json:"base"`
	Root      gitops.OID        `json:"root"`
	Part      bool              `json:"part,omitempty"` // the root has not all files of the base
	Ghost     identity.Ghost    `json:"ghost"`
	Phantom   identity.Phantom  `json:"phantom"`
	Backend   string            `json:"backend"`
	Reason    string            `json:"backend_reason"`
	Image     string            `json:"image,omitempty"`   // asked for, or built; empty for a backend without images
	Built     bool              `json:"built,omitempty"`   // the image was built for the setup
	Runtime   string            `json:"runtime,omitempty"` // asked for; empty for the engine's own
	Isolation Isolation         `json:"isolation"`
	Tools     []Tool            `json:"tools,omitempty"`
	Rootfs    string            `json:"rootfs,omitempty"` // folder that the prison's system is in; empty: the host's
	Env       []string          `json:"env"`              // names and values passed into the prison
	Setup     *Setup            `json:"setup,omitempty"`  // null if the repository does not describe its environment
	Settings  map[string]string `json:"settings"`         // settings given by flag at the start, which go before the configuration
}

// BranchName is the outer branch as its user calls it.
func (r Record) BranchName() string { return strings.TrimPrefix(r.Branch, "refs/heads/") }

// Ref is the full name of one of the airlock's own refs: base, promoted, pending.
func (r Record) Ref(name string) string { return refsOf(r.ID) + "/" + name }

func refsOf(id string) string { return "refs/airlock/" + id }

// encode keeps what JSON would not: a branch and a folder may have any bytes in their names.
func encode(r Record) ([]byte, error) {
	r.Version, r.Branch, r.Top = version, gitops.ToText(r.Branch), gitops.ToText(r.Top)
	content, err := json.MarshalIndent(r, "", "\t")
	return append(content, '\n'), err
}

func decode(content []byte, from string) (Record, error) {
	var r Record
	if err := json.Unmarshal(content, &r); err != nil {
		return r, fmt.Errorf("read %q: %w", from, err)
	}
	r.Branch, r.Top = gitops.FromText(r.Branch), gitops.FromText(r.Top)
	if r.Version != version {
		return r, fmt.Errorf("read %q: version %d, this program knows %d", from, r.Version, version)
	}
	return r, nil
}
