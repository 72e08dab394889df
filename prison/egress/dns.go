package egress

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/reverse"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/git-airlock/git-airlock/prison/egress/lookup"
)

const (
	// maxQuestion is the maximum size of a question in bytes. A message with one question and the usual extensions is shorter.
	maxQuestion = 4 << 10
	// maxAnswer is the maximum size of a DNS message in bytes.
	maxAnswer = 1<<16 - 1
	// nameTTL is how long, in seconds, programs may remember the address of a name. The address does not change.
	nameTTL = 60
	// dnsPatience is how long a question may take.
	dnsPatience = 10 * time.Second
)

// ErrNoName reports that a name does not exist.
var ErrNoName = lookup.ErrNoName

// A resolver answers the DNS questions that come out of a prison.
type resolver struct {
	// address returns the address that stands for a canonical name inside. The error is [ErrNoName] if the name does not exist.
	// The address is invalid if the name has none.
	address func(ctx context.Context, name string) (netip.Addr, error)
	// forward passes on a question about something other than an address. Nil: such questions have no answer.
	forward func(ctx context.Context, question []byte) ([]byte, error)
}

// answer returns the answer to a message, or nil if the message gets none.
func (r resolver) answer(ctx context.Context, message []byte) []byte {
	var p dnsmessage.Parser
	header, err := p.Start(message)
	if err != nil || header.Response {
		return nil
	}
	reply := dnsmessage.Header{
		ID: header.ID, Response: true, OpCode: header.OpCode, RecursionDesired: header.RecursionDesired, RecursionAvailable: true,
	}
	if header.OpCode != 0 {
		reply.RCode = dnsmessage.RCodeNotImplemented
		return build(reply, nil, netip.Addr{})
	}
	question, err := p.Question()
	if _, more := p.Question(); err != nil || !errors.Is(more, dnsmessage.ErrSectionDone) {
		reply.RCode = dnsmessage.RCodeFormatError
		return build(reply, nil, netip.Addr{})
	}
	ctx, cancel := context.WithTimeout(ctx, dnsPatience)
	defer cancel()
	if r.forward != nil && question.Class == dnsmessage.ClassINET && passedOn(question.Type) {
		hidden := func(a netip.Addr) bool { return !public(a) }
		reply.RCode = dnsmessage.RCodeNameError
		if reverse.Concerns(message, hidden) {
			return build(reply, &question, netip.Addr{})
		}
		answer, err := r.forward(ctx, message)
		switch {
		case err != nil || len(answer) < 2 || binary.BigEndian.Uint16(answer) != header.ID:
			reply.RCode = dnsmessage.RCodeServerFailure
		case !reverse.Concerns(answer, hidden):
			return answer
		}
		return build(reply, &question, netip.Addr{})
	}
	var found netip.Addr
	found, reply.RCode = r.find(ctx, question)
	return build(reply, &question, found)
}

// passedOn reports whether questions of a type are sent to a resolver of the host. Questions for addresses, for records with addresses or
// keys for an encrypted name (HTTPS and SVCB, RFC 9460), and for whole zones are not.
func passedOn(t dnsmessage.Type) bool {
	const svcb, axfr, ixfr = 64, 252, 251
	switch t {
	case dnsmessage.TypeA, dnsmessage.TypeAAAA, svcb, dnsmessage.TypeHTTPS, dnsmessage.TypeALL, axfr, ixfr:
		return false
	}
	return true
}

// find returns the address for a question, if it asks for one. In a network that is not open, every name has an address, even if no rule
// allows it (see [Engine.addressFor]): the engine refuses the connection instead.
func (r resolver) find(ctx context.Context, q dnsmessage.Question) (netip.Addr, dnsmessage.RCode) {
	name, err := Canonical(q.Name.String())
	if err != nil || !isASCII(q.Name.String()) || q.Class != dnsmessage.ClassINET {
		return netip.Addr{}, dnsmessage.RCodeNameError
	}
	if q.Type != dnsmessage.TypeA {
		return netip.Addr{}, dnsmessage.RCodeSuccess
	}
	switch address, err := r.address(ctx, name); {
	case errors.Is(err, ErrNoName):
		return netip.Addr{}, dnsmessage.RCodeNameError
	case err != nil:
		return netip.Addr{}, dnsmessage.RCodeServerFailure
	default:
		return address, dnsmessage.RCodeSuccess
	}
}

func isASCII(text string) bool {
	return !slices.ContainsFunc([]byte(text), func(c byte) bool { return c >= 0x80 })
}

// build returns an answer as a message, or nil if it cannot be encoded.
func build(h dnsmessage.Header, q *dnsmessage.Question, address netip.Addr) []byte {
	b := dnsmessage.NewBuilder(nil, h)
	b.EnableCompression()
	if q != nil {
		if b.StartQuestions() != nil || b.Question(*q) != nil {
			return nil
		}
		if address.Is4() {
			header := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: nameTTL}
			if b.StartAnswers() != nil || b.AResource(header, dnsmessage.AResource{A: address.As4()}) != nil {
				return nil
			}
		}
	}
	message, err := b.Finish()
	if err != nil {
		return nil
	}
	return message
}

// serveStream answers the questions that come over a connection (RFC 7766), until the connection ends or is silent for too long.
func (r resolver) serveStream(ctx context.Context, c net.Conn) {
	defer c.Close()
	for {
		c.SetDeadline(time.Now().Add(dnsPatience))
		var head [2]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return
		}
		size := binary.BigEndian.Uint16(head[:])
		if size > maxQuestion {
			return
		}
		question := make([]byte, size)
		if _, err := io.ReadFull(c, question); err != nil {
			return
		}
		answer := r.answer(ctx, question)
		if len(answer) == 0 || len(answer) > maxAnswer {
			return
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}
