// Package share divides the memory of a network's process among its connections and requests.
//
// An agent decides how many connections there are and how much of their bytes nobody reads. So the bytes that may wait are bounded by
// numbers: [MaxFlows] connections, of which a few have large buffers, and maxRequests requests inside TLS, of which a few have a large
// window for their answers. A connection or a request beyond the few is slower only if its packets take long to arrive. If nobody reads,
// the sender waits. All bounds together keep the process below 256 MiB, which a test in package egress measures.
package share

import (
	"net/http"
	"sync"
)

const (
	// MaxFlows is how many connections a prison may have at a time, and maxLarge how many of them have the size Large.
	MaxFlows, maxLarge = 512, 16
	// maxRequests is how many requests may be on their way at a time, and maxWide how many of them have a large window.
	maxRequests, maxWide = 512, 12
	// maxRefusals is how many requests beyond maxRequests may be answered at a time. Others get no answer.
	maxRefusals = 256
	// wideWindow and narrowWindow are how many bytes of an answer may wait to be read, if the server speaks HTTP/2.
	wideWindow, narrowWindow = 3 << 20, 64 << 10
	// frame is how many bytes a frame of HTTP/2 may have, the least that a peer may ask for (RFC 9113, section 4.2).
	frame = 16 << 10
)

// Size describes the buffers of one connection.
type Size struct {
	TCP      int       // the maximum buffer each way inside, in bytes
	Copies   sync.Pool // buffers for copying, of the type *[]byte
	Streams  int       // requests at a time over the connection
	Upstream int       // connections to the server, if it takes one request at a time
	Idle     int       // of Upstream, those that may wait for another request
	upload   int       // bytes of one request that may wait to be sent
	uploads  int       // bytes of all requests that may wait to be sent
}

// Large is the size of the first connections, and Small that of all others. Larger buffers inside help only if packets take long to
// arrive, and these do not leave the machine.
var (
	Large = &Size{TCP: 512 << 10, Copies: pool(128 << 10), Streams: 64, Upstream: 16, Idle: 16, upload: 256 << 10, uploads: 512 << 10}
	Small = &Size{TCP: 64 << 10, Copies: pool(16 << 10), Streams: 16, Upstream: 8, Idle: 1, upload: 64 << 10, uploads: 64 << 10}
)

func pool(size int) sync.Pool {
	return sync.Pool{New: func() any { b := make([]byte, size); return &b }}
}

// Server returns the settings of HTTP/2 for the clients of a connection.
func (s *Size) Server() *http.HTTP2Config {
	return &http.HTTP2Config{
		MaxConcurrentStreams: s.Streams, MaxReadFrameSize: frame, MaxReceiveBufferPerStream: s.upload, MaxReceiveBufferPerConnection: s.uploads,
	}
}

// Client returns the settings of HTTP/2 for a server. The window of a connection to a server stays as large as it is by default: if it were
// smaller than the windows of all requests together, a client that reads its answers one after the other could wait for ever.
func Client(wide bool) *http.HTTP2Config {
	if wide {
		return &http.HTTP2Config{MaxReadFrameSize: frame, MaxReceiveBufferPerStream: wideWindow}
	}
	return &http.HTTP2Config{MaxReadFrameSize: frame, MaxReceiveBufferPerStream: narrowWindow}
}

// Shares counts what is in use. The zero value has nothing in use.
type Shares struct {
	mu                              sync.Mutex
	large, wide, requests, refusals int
}

// Connect returns the size of a new connection. Disconnect gives it back.
func (s *Shares) Connect() *Size {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.large == maxLarge {
		return Small
	}
	s.large++
	return Large
}

// Disconnect gives the size of a connection back.
func (s *Shares) Disconnect(size *Size) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if size == Large {
		s.large--
	}
}

// A Place is a request's place among those that are on their way.
type Place struct{ Wide, Refused, Dropped bool }

// Begin returns the place of a new request: it has a large window, is refused since there are too many, or even dropped without an answer.
// End gives the place back.
func (s *Shares) Begin() (p Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.requests < maxRequests:
		s.requests++
		if p.Wide = s.wide < maxWide; p.Wide {
			s.wide++
		}
	case s.refusals < maxRefusals:
		s.refusals++
		p.Refused = true
	default:
		p.Dropped = true
	}
	return p
}

// End gives the place of a request back.
func (s *Shares) End(p Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case p.Dropped:
	case p.Refused:
		s.refusals--
	default:
		s.requests--
		if p.Wide {
			s.wide--
		}
	}
}
