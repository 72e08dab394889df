package record

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/bounded"
)

// Version is the version of the format.
const Version = 1

// Signal is the name of a signal, such as "SIGKILL", or empty.
type Signal string

// MarshalJSON encodes the empty name as null.
func (s Signal) MarshalJSON() ([]byte, error) {
	if s == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(s))
}

// Manifest describes a run. It is the file [ManifestName], and version 1 of "git airlock inspect --json".
type Manifest struct {
	Version int    `json:"version"`
	Session string `json:"session"` // of the airlock
	ID      string `json:"id"`      // of the airlock: four hexadecimal digits
	Run     int    `json:"run"`     // number in the session, from 1
	// Previous is the commit of the session's run before this one, or empty.
	Previous gitops.OID `json:"previous,omitempty"`
	Kind     Kind       `json:"kind"`
	Argv     []string   `json:"argv"`            // secrets and values of variables are masked; bytes that are not UTF-8 are replaced
	Agent    string     `json:"agent,omitempty"` // name of the agent's profile
	// Unneeded are hosts that the agent asks for by itself and works without. A refusal of one does not count in the verdict.
	Unneeded []string  `json:"unneeded_hosts,omitempty"`
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended"` // if nobody saw the end of the run: the time of its last sign of life
	// Exit is the exit status of the command, or null if it was not seen.
	Exit   *int   `json:"exit"`
	Signal Signal `json:"signal"` // that ended the command; null if none did
	Status Status `json:"status"`
	// Reasons say why the status is not [Completed], one sentence each.
	Reasons []string `json:"reasons,omitempty"`

	Branch string     `json:"branch"` // full name of the outer branch
	Base   gitops.OID `json:"base"`   // the outer commit that was snapshotted
	Inner  Range      `json:"inner"`  // the inner branch main
	Outer  Range      `json:"outer"`  // the outer branch
	Landed int        `json:"landed"` // commits in [CommitsName] with the state [Landed]
	// Parents has the parents of each landed commit, unless its only parent is the commit before it in [CommitsName], or
	// Outer.Before for the first one.
	Parents     map[gitops.OID][]gitops.OID `json:"parents,omitempty"`
	Held        []Hold                      `json:"held,omitempty"`
	Waiting     []Waiting                   `json:"waiting,omitempty"`
	Flagged     []Flag                      `json:"flagged,omitempty"`
	Checkpoints CheckpointRange             `json:"checkpoints"`
	// Fingerprint describes the user's index and work tree. Landings change both, so only a run without a landing
	// promises that they are equal.
	Fingerprint FingerprintRange `json:"fingerprint"`

	Backend     string    `json:"backend"`
	Isolation   Isolation `json:"isolation"`
	Weaker      []string  `json:"weaker"`           // isolation measures that the machine could not give, in words
	LimitsHit   []string  `json:"limits_hit"`       // such as "memory", "pids", "time", "workspace", "requests"
	Network     string    `json:"network"`          // "none", "allowlist" or "open"
	Policy      []string  `json:"policy"`           // ids of the policies in force, such as "builtin" and "team:<commit>"
	Review      string    `json:"review,omitempty"` // value of airlock.review: "off", "land" or "push"; empty if it was not noted
	Environment []string  `json:"environment"`      // names of the variables that were passed into the prison
	Program     string    `json:"program"`          // version of git-airlock
	// Visibility lists what the record cannot show, one sentence each. A report prints all of them.
	Visibility []string `json:"visibility"`
	// Unlisted counts what the record lacks although it happened.
	Unlisted Unlisted `json:"unlisted,omitzero"`
	// Recovered reports that the processes that watched the run died, and that a later command made the record.
	Recovered bool `json:"recovered,omitempty"`

	Files  map[string]File   `json:"files"`  // by name; all files of the record but the manifest and [SumsName]
	Absent map[string]string `json:"absent"` // by name, the reason why the record does not have the file
}

// Unlisted has the numbers of lines that the files of a record lack: the newest push out older ones, and a file has a limit.
type Unlisted struct {
	Programs uint64 `json:"programs,omitempty"`
	Network  uint64 `json:"network,omitempty"` // without those of which a line counts several
}

// Kind is the way in which a run was started.
type Kind string

// The kinds.
const (
	Launched Kind = "start" // git airlock start -- COMMAND
	Direct   Kind = "run"   // git airlock run -- COMMAND
)

// Range is the value of a ref before and after a run. An empty value was not known.
type Range struct {
	Before gitops.OID `json:"before"`
	After  gitops.OID `json:"after"`
}

// CheckpointRange is the checkpoints before and after a run.
type CheckpointRange struct {
	Before int `json:"before"` // number of the checkpoint with exactly the state before the run, 0 if there is none
	After  int `json:"after"`  // number of the newest checkpoint after the run, 0 if there is none
	// Unmade is the reason why no checkpoint has the state before the run.
	Unmade string `json:"unmade,omitempty"`
}

// Missing describes that no checkpoint has the state before the run.
func (c CheckpointRange) Missing() string {
	return strings.TrimSuffix("no checkpoint was made before this run: "+c.Unmade, ": ")
}

// FingerprintRange is the fingerprint before and after a run.
type FingerprintRange struct {
	Before Fingerprint `json:"before"`
	After  Fingerprint `json:"after"`
}

// Fingerprint describes the user's index and work tree.
type Fingerprint struct {
	Index string `json:"index"` // SHA-256 of the index file, or empty
	Tree  string `json:"tree"`  // SHA-256 of the paths, sizes, modes and times of the files, or empty
	Files int    `json:"files"` // number of files in Tree
	// Cut reports that there were more files than Tree counts.
	Cut bool `json:"cut,omitempty"`
}

// Isolation is the isolation that the prison had.
type Isolation struct {
	Runtime string  `json:"runtime"` // of a container; empty otherwise
	Memory  int64   `json:"memory"`  // limit in bytes
	CPUs    float64 `json:"cpus"`    // limit in cores
	PIDs    int     `json:"pids"`    // limit of processes and threads
}

// Hold is a reason why commits of a run wait.
type Hold struct {
	Reason  string   `json:"reason"` // such as "collision"
	Message string   `json:"message"`
	Paths   []string `json:"paths,omitempty"`
}

// Waiting is an inner ref other than main with commits, which do not land by themselves.
type Waiting struct {
	Ref     string `json:"ref"`
	Commits int    `json:"commits"`
	Next    string `json:"next"` // the command that lets them land, or shows them
}

// Flag is a rule of the gate with a finding in a commit that landed.
type Flag struct {
	Commit  gitops.OID `json:"commit"` // on the user's branch
	Rule    string     `json:"rule"`
	Meaning string     `json:"meaning"` // what the rule finds
}

// File describes a file of a record.
type File struct {
	Size int64 `json:"size"` // in the record
	// Cut is the number of bytes that were left out, 0 if the file is whole.
	Cut int64 `json:"cut,omitempty"`
	// Note describes what was cut or masked.
	Note string `json:"note,omitempty"`
}

// Status is the result of a run. If several results are true, the status is the worst of them.
type Status string

// The statuses, from the best to the worst.
const (
	Completed       Status = "completed"          // the command ended with exit status 0, and its commits landed
	CompletedHeld   Status = "completed-held"     // the command ended with exit status 0, and commits wait
	Failed          Status = "failed"             // the command ended with another exit status
	Timeout         Status = "timeout"            // the time of --max-time was over
	Stopped         Status = "stopped"            // the user, or a crash of our processes, ended the command
	Limited         Status = "limit"              // a limit ended the command: memory, the size of the workspace, or the requests of a credential
	Denied          Status = "denied"             // a rule refused a program, or a host
	IsolationBroken Status = "isolation-broken"   // a wall of the prison was found broken
	InvariantBroken Status = "invariant-violated" // a promise of git-airlock was broken, such as the note of each landed commit
)

// ladder lists the statuses from the best to the worst.
var ladder = []Status{Completed, CompletedHeld, Failed, Timeout, Stopped, Limited, Denied, IsolationBroken, InvariantBroken}

// Worst returns the worst of some statuses, and [Completed] if there are none. Unknown statuses are the worst.
func Worst(all ...Status) Status {
	worst := Completed
	for _, s := range all {
		if rank(ladder, s) > rank(ladder, worst) {
			worst = s
		}
	}
	return worst
}

// rank returns the place of a value in a list. An unknown value comes after all others.
func rank[T comparable](list []T, value T) int {
	if i := slices.Index(list, value); i >= 0 {
		return i
	}
	return len(list)
}

// Encode returns the file of a manifest.
func (m Manifest) Encode() ([]byte, error) {
	m.Version = Version
	for _, list := range []*[]string{&m.Argv, &m.Weaker, &m.LimitsHit, &m.Policy, &m.Environment, &m.Visibility} {
		if *list == nil {
			*list = []string{}
		}
	}
	content, err := json.MarshalIndent(m, "", "\t")
	return append(content, '\n'), err
}

var manifestLimits = bounded.Limits{Bytes: 4 << 20, Depth: 8, Keys: 100_000}

// DecodeManifest reads a manifest.
func DecodeManifest(content []byte) (m Manifest, err error) {
	if err := manifestLimits.JSON(content); err != nil {
		return m, fmt.Errorf("read %s: %w", ManifestName, err)
	}
	if err := json.Unmarshal(content, &m); err != nil {
		return m, fmt.Errorf("read %s: %w", ManifestName, err)
	}
	if m.Version != Version {
		return m, fmt.Errorf("read %s: its version is %d, and this program reads version %d", ManifestName, m.Version, Version)
	}
	if _, _, ok := ParseRef(Ref(m.Session, m.Run)); !ok {
		return m, fmt.Errorf("read %s: run %d of session %q is not a run", ManifestName, m.Run, gitops.Text(m.Session))
	}
	return m, nil
}

// Sentences of [Manifest.Visibility] that hold for every run, whatever the run did.
const (
	UnseenReads    = "what the command read in the workspace is not recorded"
	UnseenContents = "your files are compared by names, sizes, modes and times, not by contents"
	UnseenSecrets  = "secrets are masked where a rule of the gate finds them, and the values of variables: others can be in the output"
	UnseenInside   = "shell builtins, code inside interpreters and loaders in user space are not seen as programs"
	UnseenShared   = "memory is the sum of all processes: what they share counts several times"
	UnseenKernel   = "what the kernel refused by itself is not recorded, such as a write to a read-only file"
)

// Sentences of [Manifest.Visibility] about a file that the record does not have.
const (
	UnseenPrograms  = "programs that ran are not recorded"
	UnseenResources = "processor time and memory were not measured"
)

// General returns the sentences of [Manifest.Visibility] that hold for every run. The others are about the run.
func General() []string {
	return []string{UnseenReads, UnseenContents, UnseenSecrets, UnseenInside, UnseenShared, UnseenKernel}
}
