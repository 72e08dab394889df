// Package airlock stores the records of a repository's airlocks.
//
// An airlock binds one workspace to one outer branch, from start to clear. Its [Record] is the file state.json in the
// host state. Only this package reads and writes that file. The [Store] finds records, creates them and removes every
// trace of them.
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

// Phase is the stage of an airlock's life.
type Phase string

const (
	// Starting is an airlock whose first start has not finished. If no process holds the lock, the airlock is left
	// over from a crash.
	Starting Phase = "starting"
	// Running is an airlock whose prison and daemon should be running.
	Running Phase = "running"
	// Stopped is an airlock with a workspace but without a running prison.
	Stopped Phase = "stopped"
	// Clearing is an airlock that is being removed. The next command that finds it continues the removal.
	Clearing Phase = "clearing"
)

// Passing reports whether an airlock is being made or removed, or was left half made or half removed by an interrupted command.
func (p Phase) Passing() bool { return p == Starting || p == Clearing }

// Limits are the limits that the prison was given.
type Limits struct {
	Memory int64   `json:"memory"` // bytes
	CPUs   float64 `json:"cpus"`   // cores
	PIDs   int     `json:"pids"`   // processes and threads
}

// Isolation describes the isolation of an airlock's prison.
type Isolation struct {
	Network string     `json:"network"`
	Runtime string     `json:"runtime"`
	Limits  Limits     `json:"limits"`
	Weaker  []Weakness `json:"weaker"`
}

// Weakness is a measure of isolation that this machine could not provide.
type Weakness struct {
	Kind string `json:"kind"` // for programs
	Text string `json:"text"` // for people
}

// Tool is a file or folder of the host that is shared read-only with the prison, under a name.
type Tool struct {
	Name     string `json:"name"`
	Path     string `json:"path"`
	Optional bool   `json:"optional,omitempty"` // left out once it is gone
}

// Setup describes the result of the repository's recipe when the airlock was last started.
type Setup struct {
	File   string   `json:"file"`   // path from the top of the work tree
	Digest string   `json:"digest"` // SHA-256 of the file and of the files that it names
	Names  []string `json:"names"`  // paths that it names

	Variables []string `json:"variables"` // names of the environment variables that it sets
}

// Variable names an environment variable that was passed into the prison. Its value may be a secret. Only the
// prison's memory holds the value, and a later start reads it again.
type Variable struct {
	Name string `json:"name"`
	From string `json:"from"` // the source of the value: "option", "setting", "environment" or ".env"
}

// Rules are the rules of the network that options of starts have given, in addition to those of the settings.
type Rules struct {
	Allow []string `json:"allow,omitempty"` // of --allow; nil if the option was not given
	Deny  []string `json:"deny,omitempty"`  // of --deny, likewise
	// Agent is the name of an agent that a start asked for, and Needs are the rules of its profile.
	Agent string   `json:"agent,omitempty"`
	Needs []string `json:"needs,omitempty"`
	// Unneeded are hosts that the agent asks for and works without.
	Unneeded []string `json:"unneeded,omitempty"`
	// Keys are the variables with keys that the agent would take from the user's environment.
	Keys []string `json:"keys,omitempty"`
	// Login is used if the agent gets no key otherwise. The zero value is none.
	Login Login `json:"login,omitzero"`
}

// Login is the login of an agent's program on this machine.
type Login struct {
	Credential string   `json:"credential"` // its name, which is a known one
	Source     string   `json:"source"`     // for airlock.credential.NAME.source
	Variables  []string `json:"variables"`  // if a credential has one of these variables, the login is not used
}

// After returns the rules of a start that follows an earlier one. Options that this start does not have are those of the earlier start.
func (r Rules) After(earlier Rules) Rules {
	if r.Allow == nil {
		r.Allow = earlier.Allow
	}
	if r.Deny == nil {
		r.Deny = earlier.Deny
	}
	if r.Agent == "" {
		r.Agent, r.Needs, r.Unneeded, r.Keys, r.Login = earlier.Agent, earlier.Needs, earlier.Unneeded, earlier.Keys, earlier.Login
	}
	return r
}

// Record describes one airlock.
type Record struct {
	Version   int               `json:"version"`
	ID        string            `json:"id"`
	Session   string            `json:"session"`
	Phase     Phase             `json:"phase"`
	Branch    string            `json:"branch"`     // full name of the outer branch
	Worktree  string            `json:"worktree"`   // id within the repository, empty for the main one
	Top       string            `json:"top"`        // path of that worktree when a command last saw it
	RepoID    string            `json:"repository"` // identity of the repository; empty if it cannot be read
	Workspace string            `json:"workspace"`  // name of the workspace's folder
	Inside    bool              `json:"inside"`     // the workspace is in the work tree, not in the host state
	Format    string            `json:"format"`     // object format
	Base      gitops.OID        `json:"base"`
	Root      gitops.OID        `json:"root"`
	Partial   bool              `json:"partial,omitempty"` // the root has not all files of the base
	Ghost     identity.Ghost    `json:"ghost"`
	Phantom   identity.Phantom  `json:"phantom"`
	Backend   string            `json:"backend"`
	Reason    string            `json:"backend_reason"`
	Image     string            `json:"image,omitempty"`   // asked for, or built; empty for a backend without images
	Built     bool              `json:"built,omitempty"`   // the image was built for the setup
	Runtime   string            `json:"runtime,omitempty"` // asked for; empty for the engine's own
	Isolation Isolation         `json:"isolation"`
	Rules     Rules             `json:"rules,omitzero"`
	Tools     []Tool            `json:"tools,omitempty"`
	Rootfs    string            `json:"rootfs,omitempty"` // folder that the prison's system is in; empty: the host's
	Variables []Variable        `json:"variables"`        // those of the user that are passed into the prison
	Setup     *Setup            `json:"setup,omitempty"`  // null if the repository does not describe its environment
	Settings  map[string]string `json:"settings"`         // settings given by flag at the start, which go before the configuration
}

// BranchName returns the outer branch's name without refs/heads/.
func (r Record) BranchName() gitops.Text {
	return gitops.Text(strings.TrimPrefix(r.Branch, "refs/heads/"))
}

// Ref returns the full name of one of the airlock's own refs: base, promoted or pending.
func (r Record) Ref(name string) string { return refsOf(r.ID) + "/" + name }

func refsOf(id string) string { return "refs/airlock/" + id }

// encode writes a record as JSON. A branch, a worktree and a folder may have any bytes in their names, which JSON alone would not
// preserve.
func encode(r Record) ([]byte, error) {
	r.Version, r.Branch, r.Worktree, r.Top = version, gitops.ToText(r.Branch), gitops.ToText(r.Worktree), gitops.ToText(r.Top)
	content, err := json.MarshalIndent(r, "", "\t")
	return append(content, '\n'), err
}

func decode(content []byte, from string) (Record, error) {
	var r Record
	if err := json.Unmarshal(content, &r); err != nil {
		return r, fmt.Errorf("read %q: %w", from, err)
	}
	r.Branch, r.Worktree, r.Top = gitops.FromText(r.Branch), gitops.FromText(r.Worktree), gitops.FromText(r.Top)
	if r.Version != version {
		return r, fmt.Errorf("read %q: its version is %d, and this program reads version %d", from, r.Version, version)
	}
	return r, nil
}
