package control

import (
	"strings"
	"time"
)

// Kinds of records.
const (
	KindFlow    = "flow"    // a connection, at its end; a long one also after [LongFlow], with the verdict [VerdictBegun]
	KindRequest = "request" // a request of plain HTTP, at its end
	KindRefusal = "refusal" // connections, requests or datagrams that were refused
	KindPolicy  = "policy"  // other rules are in force: Rule is the generation, Reason what changed
	KindAlarm   = "alarm"   // what people should look at, such as a network process that was killed
)

// Values of [Record.Verdict].
const (
	VerdictAllow  = "allow"
	VerdictDeny   = "deny"
	VerdictBegun  = "begun"  // an allowed connection that goes on
	VerdictClosed = "closed" // an allowed connection that a change of rules, or a lockdown, ended
	VerdictFailed = "failed" // allowed, and not connected: Reason says why
)

// Values of [Record.Reason] when a rule that denies has refused something. All other refusals may name a rule that allows, such as of a
// connection that could not be recorded, or that had ended.
const (
	ReasonDenied        = "a rule denies it"
	ReasonDeniedRequest = "a rule denies the request"
)

// ReasonLockdown is the value of [Record.Reason] during a lockdown. [ReasonFinal] begins the reasons of refusals that no rule ends, such
// as of a request for another host than its connection.
const (
	ReasonLockdown = "lockdown"
	ReasonFinal    = "no rule can allow it: "
)

// Values of [Record.Proto].
const (
	ProtoTLS  = "tls"
	ProtoHTTP = "http"
	ProtoTCP  = "raw"
	ProtoUDP  = "udp"
)

// ViaTAP is the value of [Record.Via] for packets that came through an interface, the only one so far.
const ViaTAP = "tap"

// SeenOpaque and SeenRequest are the values of [Record.Seen]: contents were not seen, or requests were.
const (
	SeenOpaque  = "opaque"
	SeenRequest = "request"
)

// LongFlow is how long a connection lasts before it gets a record before its end.
const LongFlow = time.Minute

// Record is a line of the ledger. It never contains a query, a header, a body or the value of a credential. All text in it
// is bounded, and may contain any bytes of the agent's.
//
// The network fills in everything except V, Seq, Session and Prev, which the writer of the ledger sets.
type Record struct {
	V       int       `json:"v"`
	Seq     uint64    `json:"seq"`
	Time    time.Time `json:"time"` // of the end; the last one of refusals that count as one
	Session string    `json:"session,omitempty"`
	Kind    string    `json:"kind"`
	Via     string    `json:"via,omitempty"`
	Proto   string    `json:"proto,omitempty"`
	Name    string    `json:"name,omitempty"`
	Port    uint16    `json:"port,omitempty"`
	Address string    `json:"address,omitempty"` // the one that was connected to, or refused
	Verdict string    `json:"verdict,omitempty"`
	Rule    string    `json:"rule,omitempty"` // its text and, after a space and "(", its source and ")"
	Reason  string    `json:"reason,omitempty"`
	Seen    string    `json:"seen,omitempty"`
	Method  string    `json:"method,omitempty"`
	Path    string    `json:"path,omitempty"` // without the query
	Status  int       `json:"status,omitempty"`
	// Credential is the name of the credential that was added.
	Credential string `json:"credential,omitempty"`
	Sent       int64  `json:"sent,omitempty"` // bytes from inside
	Received   int64  `json:"received,omitempty"`
	Millis     int64  `json:"ms,omitempty"`
	Count      int    `json:"count,omitempty"` // how many refusals this record stands for, 0 means 1
	Prev       string `json:"prev"`            // SHA-256 of the line before, in hexadecimal
}

// Denied reports whether a rule that denies has refused it.
func (r Record) Denied() bool {
	return r.Kind == KindRefusal && (r.Reason == ReasonDenied || r.Reason == ReasonDeniedRequest)
}

// Final reports whether no rule would allow what was refused.
func (r Record) Final() bool {
	return r.Kind == KindRefusal && strings.HasPrefix(r.Reason, ReasonFinal)
}

// Ledger is where the holder of a network writes records, as package ledger does.
type Ledger interface {
	// Append writes records, and returns an error if not all of them can be read again. It sets V, Seq, Session and Prev.
	Append(records ...Record) error
	// Reserve makes room on the disk for as many more records. An error means that no further connection may be made.
	Reserve(records int) error
	// Close releases the file.
	Close() error
}
