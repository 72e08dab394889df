package lookup

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestLookUpShortly has a resolver that answers no question, and then does. The time for a name that had no answer is short for a while,
// and no look-up is left out. Other names, and other errors, change nothing.
func TestLookUpShortly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gave []time.Duration
		var answer error
		silent := &net.DNSError{Err: "i/o timeout", IsTimeout: true}
		r := &Resolver{ask: func(ctx context.Context, _ string, each time.Duration) ([]netip.Addr, error) {
			gave = append(gave, each)
			if end, some := ctx.Deadline(); !some || each > 0 && time.Until(end) != maxResolvers*each {
				t.Errorf("%v for each of %d resolvers, and %v for all", each, maxResolvers, time.Until(end))
			}
			if errors.Is(answer, silent) {
				time.Sleep(2 * each)
			}
			return nil, answer
		}}
		for _, step := range []struct {
			name   string
			passes time.Duration
			answer error
			want   time.Duration
		}{
			{"a.test", 0, ErrNoName, trial}, {"a.test", 0, silent, trial}, {"a.test", 0, silent, retrial}, {"b.test", 0, silent, trial},
			{"a.test", silence / 2, silent, retrial}, {"a.test", silence / 2, silent, trial}, {"a.test", 0, nil, retrial}, {"a.test", 0, silent, trial},
			{"a.test", 0, errors.New("SERVFAIL"), retrial}, {"a.test", 0, nil, trial},
		} {
			time.Sleep(step.passes)
			answer = step.answer
			r.LookUpShortly(t.Context(), step.name)
			if got := gave[len(gave)-1]; got != step.want {
				t.Errorf("%d, %+v: %v", len(gave), step, got)
			}
		}
		if r.LookUp(t.Context(), "a.test"); gave[len(gave)-1] != 0 {
			t.Error("a look-up without a proxy is short")
		}
		answer = silent
		ended, end := context.WithCancel(t.Context())
		end()
		r.LookUpShortly(ended, "c.test")
		if len(r.silent) != 1 { // b.test
			t.Errorf("%v", r.silent)
		}
	})
}

// TestImpatient gives a question to a resolver that does not answer, over a connection whose deadline is later.
func TestImpatient(t *testing.T) {
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.DialUDP("udp", nil, l.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var i net.Conn = &impatient{c, 20 * time.Millisecond}
	if _, datagrams := i.(net.PacketConn); !datagrams {
		t.Error("the package net would send the length of a message, as over TCP")
	}
	i.SetDeadline(time.Now().Add(time.Hour))
	began := time.Now()
	if _, err := i.Read(make([]byte, 10)); err == nil || time.Since(began) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	i.SetDeadline(time.Unix(1, 0))
	if _, err := i.Write([]byte("x")); err == nil {
		t.Error("an earlier deadline does not hold")
	}
}

func TestNameServers(t *testing.T) {
	got := nameServers("# nameserver 192.0.2.1\nnameserver 192.0.2.2\n\tnameserver fe80::1%eth0 \nsearch a.test\nnameserver x\nnameserver ::1\nnameserver 192.0.2.4\n")
	if want := []string{"192.0.2.2:53", "[fe80::1%eth0]:53", "[::1]:53"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
