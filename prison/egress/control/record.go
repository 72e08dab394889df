package control

import (
	"slices"
	"strings"
	"time"
)

// Kinds of records.
const (
	KindFlow    = "flow"    // a connection, at its end; a long one also after [LongFlow], with the verdict [VerdictBegun]
	KindRequest = "request" // a request that the network has seen, at its end
	KindRefusal = "refusal" // connections, requests or datagrams that were refused
	KindPolicy  = "policy"  // new rules are in force: Rule has their generation, Reason how many they are
	KindAlarm   = "alarm"   // an event that people should look at, such as a network process that was killed
)

// Values of [Record.Verdict].
const (
	VerdictAllow  = "allow"
	VerdictDeny   = "deny"
	VerdictBegun  = "begun"  // an allowed connection that goes on
	VerdictClosed = "closed" // an allowed connection that a change of rules, or a lockdown, ended
	VerdictFailed = "failed" // allowed, but it failed: Reason says why
	VerdictLost   = "lost"   // of an alarm: connections and requests before it may have no record
)

// Values of [Record.Reason] for a refusal by a rule that denies. In other refusals, [Record.Rule] may be a rule that allows, for example if
// a connection could not be recorded, or had ended.
const (
	ReasonDenied        = "a rule denies it"
	ReasonDeniedRequest = "a rule denies the request"
)

// ReasonNoRule is the value of [Record.Reason] for a connection that no rule is about.
const ReasonNoRule = "no rule allows it"

// ReasonLockdown is the value of [Record.Reason] during a lockdown. [ReasonFinal] begins the reasons of refusals that no rule can lift,
// such as for a request for another host than its connection.
const (
	ReasonLockdown = "lockdown"
	ReasonFinal    = "no rule can allow it: "
)

// ReasonEncrypted is the value of [Record.Reason] for an encrypted client hello on a connection whose bytes the network would only copy. Only
// a rule with the option "ech" lifts this refusal.
const ReasonEncrypted = "encrypted client hello, which can name another server unseen"

// ReasonCertificate begins the value of [Record.Reason] for a connection whose client has sent the alert that it does not accept the
// certificate with which the network answers in place of the server.
const ReasonCertificate = "the client does not accept the certificate: "

// OtherPaths is the value of [Record.Path] for refused requests whose paths were too many to record each.
const OtherPaths = "/..."

// Values of [Record.Proto].
const (
	ProtoTLS  = "tls"
	ProtoHTTP = "http"
	ProtoTCP  = "raw"
	ProtoUDP  = "udp"
)

// ViaTAP is the value of [Record.Via] for packets that came through an interface, the only one so far.
const ViaTAP = "tap"

// SeenOpaque and SeenRequest are the values of [Record.Seen]: the network saw bytes only, or requests.
const (
	SeenOpaque  = "opaque"
	SeenRequest = "request"
)

// LongFlow is how long a connection lasts until it gets a record with [VerdictBegun].
const LongFlow = time.Minute

// Record is a line of the ledger. It never contains a query, a header, a body or the value of a credential. All text in it is bounded, and
// may contain any bytes that the agent chose.
//
// The network fills in everything except V, Seq, Session and Prev, which the writer of the ledger sets.
type Record struct {
	V       int       `json:"v"`
	Seq     uint64    `json:"seq"`
	Time    time.Time `json:"time"` // of the end, or of the last of several refusals
	Session string    `json:"session,omitempty"`
	Kind    string    `json:"kind"`
	Via     string    `json:"via,omitempty"`
	Proto   string    `json:"proto,omitempty"`
	Name    string    `json:"name,omitempty"`
	Port    uint16    `json:"port,omitempty"`
	Address string    `json:"address,omitempty"` // the one that was connected to, or refused
	Verdict string    `json:"verdict,omitempty"`
	Rule    string    `json:"rule,omitempty"` // TEXT (SOURCE), or TEXT without a source
	Reason  string    `json:"reason,omitempty"`
	Seen    string    `json:"seen,omitempty"`
	Method  string    `json:"method,omitempty"`
	Path    string    `json:"path,omitempty"` // without the query
	Status  int       `json:"status,omitempty"`
	// Credential is the name of the credential that was added.
	Credential string `json:"credential,omitempty"`
	Sent       int64  `json:"sent,omitempty"`     // bytes from inside
	Received   int64  `json:"received,omitempty"` // bytes from outside
	Millis     int64  `json:"ms,omitempty"`       // duration in milliseconds
	Count      int    `json:"count,omitempty"`    // how many refusals, alarms or changes of rules this record stands for, 0 means 1
	Prev       string `json:"prev"`               // SHA-256 of the line before, in hexadecimal
}

// Flow describes the connection of a record that is not in the ledger yet. ok is false unless the record is of the end of a connection.
func (r Record) Flow() (f Flow, ok bool) {
	return Flow{Begun: r.Time.Add(-time.Duration(r.Millis) * time.Millisecond), Proto: r.Proto, Name: r.Name, Port: r.Port, Address: r.Address, Rule: r.Rule,
		Sent: r.Sent, Got: r.Received, Ended: true}, r.Kind == KindFlow && r.Verdict != VerdictBegun
}

// Denied reports whether the record is of a refusal by a rule that denies.
func (r Record) Denied() bool {
	return r.Kind == KindRefusal && (r.Reason == ReasonDenied || r.Reason == ReasonDeniedRequest)
}

// For reports whether the record is of connections that were refused because no rule is about one of some hosts.
func (r Record) For(hosts []string) bool {
	return r.Kind == KindRefusal && r.Reason == ReasonNoRule && slices.Contains(hosts, r.Name)
}

// Encrypted reports whether the record is of a connection that was refused for its encrypted client hello.
func (r Record) Encrypted() bool { return r.Kind == KindRefusal && r.Reason == ReasonEncrypted }

// Unaccepted reports whether the record is of a connection whose client did not accept the network's certificate.
func (r Record) Unaccepted() bool {
	return r.Kind == KindFlow && r.Verdict == VerdictFailed && strings.HasPrefix(r.Reason, ReasonCertificate)
}

// Final reports whether the record is of a refusal that no rule can lift.
func (r Record) Final() bool {
	return r.Kind == KindRefusal && strings.HasPrefix(r.Reason, ReasonFinal)
}
