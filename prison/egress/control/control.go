// Package control describes how a running network of a prison is steered from the host, and what it reports.
//
// The network of a prison is a process without files (package egress). The process that holds the prison, its holder, such as the keeper of
// a native prison, steers the network over a socket and reads and writes files for it. Commands and the holder exchange three files in the
// prison's folder on the host ([prison.Spec.Dir]):
//
//   - [RulesFile] contains [Rules]. A command that starts a prison writes the file before it starts the prison, and a
//     command that changes a rule replaces the file with a greater [Rules.Generation] while it holds the airlock's lock.
//     The holder notices the new file, and the network uses the new rules at once: within a second, it ends connections
//     that the new rules do not allow. The holder never writes the file. Without the file nothing is allowed.
//   - [StateFile] contains [State]. Only the holder writes the file, only after a change and at most twice a second, and
//     also before the agent learns that a credential was refused.
//     [State.Generation] acknowledges the rules that are in force. [State.Error] is the reason why newer ones are not.
//     A connection that has ended stays in [State.Flows] until the ledger has its record. A command that must know all
//     connections calls [Ask] and waits for a state with this number in [State.Asked].
//   - [LedgerFile] contains one [Record] a line. Only the holder appends to it. A network whose records cannot be written
//     makes no connection.
//
// Package egress, and not this one, parses rules: a native prison's keeper begins before the packages for addresses are initialised
// (package wire).
package control

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/git-airlock/git-airlock/prison/hostfile"
)

// Names of the files in a prison's folder on the host.
const (
	RulesFile  = "network.json"
	StateFile  = "network-state.json"
	LedgerFile = "egress.jsonl"
	AskedFile  = "network-asked.json" // the number of the last question of [Ask]
	// usesFile is the last state of a network that has ended.
	usesFile = "network-ended.json"
)

// Version is the value of the fields V.
const Version = 1

// Rules is a set of rules as it travels from a command to the network.
type Rules struct {
	V int `json:"v"`
	// Generation increases with each change. A network ignores rules that are older than its own.
	Generation uint64 `json:"generation"`
	// Lockdown refuses all connections, and ends those that are open. Names still have addresses.
	Lockdown bool `json:"lockdown,omitempty"`
	// Learn allows every public host that no rule denies.
	Learn bool   `json:"learn,omitempty"`
	Allow []Rule `json:"allow,omitempty"`
	Deny  []Rule `json:"deny,omitempty"` // a denial wins over any permission
	// Proxy is the URL of a proxy that all connections go through, without its password, which is the value with the name [ProxyPassword].
	// Empty means none.
	Proxy string `json:"proxy,omitempty"`
	// Credentials are added to requests. Rules never contain their values.
	Credentials []Credential `json:"credentials,omitempty"`
	// Added has the certificates (PEM) of authorities that the network and programs inside trust, in addition to those of their systems.
	Added string `json:"added,omitempty"`
}

// ProxyPassword is the name of the value that is the password of [Rules.Proxy]. No credential has this name.
const ProxyPassword = "upstream proxy"

// Credential describes the credential of some servers, without its value: see package credential.
type Credential struct {
	Name string `json:"name"`
	// Rules describe the requests that get the value, in the form of a rule. All other requests to these hosts get none.
	Rules  []string `json:"rules"`
	Header string   `json:"header"`
	Format string   `json:"format"`
	// Placeholder is what programs inside have instead of the value, and Variables are where they find it. Without a placeholder
	// nobody can use the credential.
	Placeholder string   `json:"placeholder,omitempty"`
	Variables   []string `json:"variables,omitempty"`
	// Base lets programs inside speak HTTP without TLS to these hosts, at port 80. The network speaks TLS with the hosts.
	Base bool `json:"base,omitempty"`
	// BaseURL is a variable inside with the address of the service, as NAME=URL; empty for none.
	BaseURL string `json:"baseURL,omitempty"`
	// With is a further variable inside, as NAME=VALUE; empty for none.
	With string `json:"with,omitempty"`
	// Limit is the maximum number of requests a day (UTC) that get the value; 0 means no limit.
	Limit int `json:"limit,omitempty"`
	// Source is where the value comes from, as the user has written it.
	Source string `json:"source"`
}

// Rule is a rule with its origin.
type Rule struct {
	// Text is the rule as package egress parses it. It is not the name of a set: commands replace a set by its rules.
	Text string `json:"text"`
	// Source is where people find the rule, such as "/home/me/.gitconfig:12", "@npm" or "git airlock net allow".
	Source string `json:"source,omitempty"`
	// Until is when the rule ends; zero means never. Since is when it was made, if it is a permission that ends: see [Rule.Ended].
	Until time.Time `json:"until,omitzero"`
	Since time.Time `json:"since,omitzero"`
}

// ReadRules reads the rules in a prison's folder. Without the file, nothing is allowed and the generation is 0.
func ReadRules(dir string) (r Rules, err error) {
	err = hostfile.Read(filepath.Join(dir, RulesFile), &r)
	if errors.Is(err, os.ErrNotExist) {
		return Rules{V: Version}, nil
	}
	if err == nil && r.V != Version {
		err = fmt.Errorf("%s has version %d, want %d", RulesFile, r.V, Version)
	}
	return r, err
}

// WriteRules replaces the rules in a prison's folder, and sets the version. The caller has increased the generation, and
// holds a lock that keeps others from doing the same.
func WriteRules(dir string, r Rules) error {
	r.V = Version
	return hostfile.Write(filepath.Join(dir, RulesFile), r)
}

// State describes a running network.
type State struct {
	V int `json:"v"`
	// Generation is the generation of the rules in force.
	Generation uint64 `json:"generation"`
	// Closed is how many connections these rules have ended.
	Closed int `json:"closed,omitempty"`
	// Error is the reason why newer rules are not in force; the network then keeps the old ones.
	Error string `json:"error,omitempty"`
	// Ledger is the reason why records cannot be written: no connection is made meanwhile.
	Ledger string `json:"ledger,omitempty"`
	// PID is the network's process, and Since the time of its start. Starts is how many such processes there were.
	PID    int       `json:"pid"`
	Since  time.Time `json:"since,omitzero"`
	Starts int       `json:"starts"`
	// Asked is the number of the last question of [Ask] that this state answers. A holder of an earlier version answers none: 0.
	Asked uint64 `json:"asked,omitempty"`
	// Flows are the connections at this moment, oldest first, and before them those that have ended and that the ledger has no record of.
	Flows []Flow `json:"flows,omitempty"`
	// Names is how many names have an address inside.
	Names int `json:"names"`
	// Admitted and Refused count connections and requests since Since.
	Admitted uint64 `json:"admitted"`
	Refused  uint64 `json:"refused"`
	// Authorities are the certificates (PEM) that programs inside must trust, because the network process answers instead of the
	// servers whose requests it decides about. It is empty without a rule of requests.
	Authorities string `json:"authorities,omitempty"`
	// Credentials describes the use of the credentials of the rules in force.
	Credentials []CredentialUse `json:"credentials,omitempty"`
	// Proxy is the result of the last connection through [Rules.Proxy], if it failed.
	Proxy *ProxyFailure `json:"proxy,omitempty"`
}

// ProxyFailure describes a failure of a proxy. It has no password.
type ProxyFailure struct {
	Reason string    `json:"reason"`          // begins with the cause
	Login  bool      `json:"login,omitempty"` // the proxy does not accept the user or the password
	Target string    `json:"target"`          // HOST:PORT of the connection
	Time   time.Time `json:"time"`
}

// CredentialUse describes the use of a credential by a running network.
type CredentialUse struct {
	Name string `json:"name"`
	// Known reports that the network has the value.
	Known bool `json:"known"`
	// Requests is how many requests got the value, Last the time of the last one, and Today how many of them were on the day (UTC) of Last.
	Requests uint64    `json:"requests"`
	Last     time.Time `json:"last,omitzero"`
	Today    int       `json:"today,omitempty"`
	// Status is the status of the last answer if the server refused the value with it, 401, 403 or 429, or failed, from 500 on. The network
	// answers 429 beyond [Credential.Limit].
	Status int `json:"status,omitempty"`
	// Since is since when the server has answered nothing, although a request waits, and Silent how long the last request waited that ended
	// without an answer. Both are zero if the server has answered since.
	Since  time.Time     `json:"since,omitzero"`
	Silent time.Duration `json:"silent_ns,omitempty"`
	// Ended reports that the network has ended: see [LastUses].
	Ended bool `json:"-"`
}

// Flow is a connection from inside to the world.
type Flow struct {
	ID      uint64    `json:"id"`
	Begun   time.Time `json:"begun"`
	Proto   string    `json:"proto"`
	Name    string    `json:"name,omitempty"`
	Port    uint16    `json:"port"`
	Address string    `json:"address,omitempty"`
	Rule    string    `json:"rule,omitempty"`
	Source  string    `json:"source,omitempty"` // of the rule
	Sent    int64     `json:"sent"`             // bytes from inside
	Got     int64     `json:"received"`         // bytes from outside
	// Ended reports that the connection has ended, and that its record is not in the ledger yet.
	Ended bool `json:"ended,omitempty"`
}

// ReadState reads the state in a prison's folder. Without the file, the network has not run.
func ReadState(dir string) (s State, err error) {
	err = hostfile.ReadRunning(filepath.Join(dir, StateFile), &s)
	return s, err
}

// WriteState replaces the state in a prison's folder, and sets the version.
func WriteState(dir string, s State) error {
	s.V = Version
	return hostfile.WriteRunning(filepath.Join(dir, StateFile), s)
}

// Ask writes a question to the network into a prison's folder, and returns the number of the question. last is the present state. The network
// answers with a state that has this number, or a higher one, in [State.Asked]. That state has all connections that began before the question and
// have no record in the ledger.
func Ask(dir string, last State) (asked uint64, err error) {
	asked = max(uint64(time.Now().UnixNano()), last.Asked+1) //nolint:gosec // after 1970
	return asked, hostfile.WriteRunning(filepath.Join(dir, AskedFile), asked)
}

// ReadAsked returns the number of the last question, 0 without one.
func ReadAsked(dir string) (asked uint64) {
	hostfile.ReadRunning(filepath.Join(dir, AskedFile), &asked) //nolint:errcheck // the caller of Ask then gets no answer
	return asked
}

// IsBad reports whether a server says with a status that a value is not valid, may not do this, or was used too often, or that the server itself
// has failed.
func IsBad(status int) bool { return status == 401 || status == 403 || status == 429 || status >= 500 }

// SameDay reports whether [CredentialUse.Today] counts requests of the day (UTC) of now, or of a later one if the clock was set back.
func (u CredentialUse) SameDay(now time.Time) bool {
	const day = 24 * time.Hour
	return !now.UTC().Truncate(day).After(u.Last.UTC().Truncate(day))
}

// SilentAfter is how long a server may answer nothing until people should see it. A model that thinks may need longer.
const SilentAfter = 30 * time.Second

// Silence returns for how long a server has answered nothing at a moment, although a request waits or has waited, and 0 for a time below
// [SilentAfter].
func (u CredentialUse) Silence(now time.Time) time.Duration {
	silent := u.Silent
	if !u.Since.IsZero() {
		silent = max(silent, now.Sub(u.Since))
	}
	if silent < SilentAfter {
		return 0
	}
	return silent
}

// EndState renames the state's file after the network has ended, so that no network counts as running. [LastUses] and
// [EarlierUses] read the file.
func EndState(dir string) error {
	return os.Rename(filepath.Join(dir, StateFile), filepath.Join(dir, usesFile))
}

// LastUses returns the uses of credentials when the last network of a prison ended, with the status of the last answer. It is empty if none
// has run. The state of a holder that was killed may have a request that waits. Its silence ends when the file was written, because nobody
// knows what happened later.
func LastUses(dir string) []CredentialUse {
	path := filepath.Join(dir, StateFile) // of a holder that was killed
	s, err := ReadState(dir)
	if err != nil {
		path = filepath.Join(dir, usesFile)
		err = hostfile.Read(path, &s)
	}
	if err != nil {
		return nil
	}
	var written time.Time
	if info, err := os.Stat(path); err == nil {
		written = info.ModTime()
	}
	for i := range s.Credentials {
		u := &s.Credentials[i]
		u.Silent, u.Since = u.Silence(written), time.Time{}
		u.Known, u.Ended = false, true
	}
	return s.Credentials
}

// EarlierUses returns how often credentials were used in earlier networks of a prison. It is empty if none has run.
func EarlierUses(dir string) []CredentialUse {
	s, err := ReadState(dir) // of a holder that was killed
	if err != nil && hostfile.Read(filepath.Join(dir, usesFile), &s) != nil {
		return nil
	}
	for i := range s.Credentials {
		u := &s.Credentials[i]
		u.Known, u.Status, u.Since, u.Silent = false, 0, time.Time{}, 0
	}
	return s.Credentials
}
