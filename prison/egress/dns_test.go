package egress

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// question is a DNS message that asks for a name.
func question(t testing.TB, name string, kind dnsmessage.Type) []byte {
	t.Helper()
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: 4711, RecursionDesired: true})
	n, err := dnsmessage.NewName(name)
	if err := errors.Join(err, b.StartQuestions(), b.Question(dnsmessage.Question{Name: n, Type: kind, Class: dnsmessage.ClassINET})); err != nil {
		t.Fatal(err)
	}
	message, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return message
}

var standsFor = netip.MustParseAddr("198.18.0.7")

// known is a resolver that finds files.test, and fails for broken.test.
var known = resolver{address: func(_ context.Context, name string) (netip.Addr, error) {
	switch name {
	case "files.test":
		return standsFor, nil
	case "empty.test":
		return netip.Addr{}, nil
	case "broken.test":
		return netip.Addr{}, errors.New("no answer")
	}
	return netip.Addr{}, ErrNoName
}}

func TestAnswers(t *testing.T) {
	const svcb, axfr, null = 64, 252, 10
	for _, c := range []struct {
		name    string
		kind    dnsmessage.Type
		code    dnsmessage.RCode
		address bool
	}{
		{"files.test.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, true},
		{"FILES.test.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, true},
		{"files.test.", dnsmessage.TypeAAAA, dnsmessage.RCodeSuccess, false},
		{"files.test.", dnsmessage.TypeHTTPS, dnsmessage.RCodeSuccess, false},
		{"files.test.", svcb, dnsmessage.RCodeSuccess, false},
		{"files.test.", axfr, dnsmessage.RCodeSuccess, false},
		{"files.test.", dnsmessage.TypeALL, dnsmessage.RCodeSuccess, false},
		{"files.test.", dnsmessage.TypeTXT, dnsmessage.RCodeSuccess, false},
		{"files.test.", null, dnsmessage.RCodeSuccess, false},
		{"empty.test.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, false},
		{"broken.test.", dnsmessage.TypeA, dnsmessage.RCodeServerFailure, false},
		{"none.test.", dnsmessage.TypeA, dnsmessage.RCodeNameError, false},
		{"files\x00.test.", dnsmessage.TypeA, dnsmessage.RCodeNameError, false},
		{"\xef\xbd\x86iles.test.", dnsmessage.TypeA, dnsmessage.RCodeNameError, false},
		{".", dnsmessage.TypeA, dnsmessage.RCodeNameError, false},
	} {
		var m dnsmessage.Message
		if err := m.Unpack(known.answer(t.Context(), question(t, c.name, c.kind))); err != nil {
			t.Errorf("%q %v: %v", c.name, c.kind, err)
			continue
		}
		if m.ID != 4711 || !m.Response || m.RCode != c.code || (len(m.Answers) == 1) != c.address || len(m.Questions) != 1 {
			t.Errorf("%q %v: %+v", c.name, c.kind, m)
		}
		if c.address && m.Answers[0].Body.(*dnsmessage.AResource).A != standsFor.As4() {
			t.Errorf("%q: %+v", c.name, m.Answers)
		}
	}
}

// TestForwardedQuestions checks that only questions that do not ask for an address are passed on.
func TestForwardedQuestions(t *testing.T) {
	var asked int
	r := known
	r.forward = func(_ context.Context, question []byte) ([]byte, error) {
		asked++
		return append([]byte{}, question...), nil
	}
	for kind, want := range map[dnsmessage.Type]int{
		dnsmessage.TypeTXT: 1, dnsmessage.TypeMX: 1, dnsmessage.TypeSRV: 1, dnsmessage.TypePTR: 1,
		dnsmessage.TypeA: 0, dnsmessage.TypeAAAA: 0, dnsmessage.TypeHTTPS: 0, dnsmessage.TypeALL: 0,
	} {
		asked = 0
		if r.answer(t.Context(), question(t, "files.test.", kind)); asked != want {
			t.Errorf("%v: passed on %d times", kind, asked)
		}
	}
	r.forward = func(context.Context, []byte) ([]byte, error) { return []byte{1, 2, 3}, nil } // the answer to another question
	var m dnsmessage.Message
	if err := m.Unpack(r.answer(t.Context(), question(t, "files.test.", dnsmessage.TypeTXT))); err != nil || m.RCode != dnsmessage.RCodeServerFailure {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestNamesOfThisMachine has a resolver that knows the name of this machine. It sends questions for the names of addresses: directly, through
// another name, and for whole zones.
func TestNamesOfThisMachine(t *testing.T) {
	const laptop = "laptop."
	asked := 0
	r := known
	r.forward = func(_ context.Context, question []byte) ([]byte, error) {
		asked++
		var m dnsmessage.Message
		if err := m.Unpack(question); err != nil {
			return nil, err
		}
		m.Response = true
		owner := m.Questions[0].Name
		if owner.String() == "alias.test." {
			target := dnsmessage.MustNewName("2.0.0.127.in-addr.arpa.")
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: owner, Class: dnsmessage.ClassINET}, Body: &dnsmessage.CNAMEResource{CNAME: target}})
			owner = target
		}
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: owner, Class: dnsmessage.ClassINET}, Body: &dnsmessage.PTRResource{PTR: dnsmessage.MustNewName(laptop)}})
		return m.Pack()
	}
	for name, want := range map[string]bool{
		"2.0.0.127.in-addr.arpa.": false, "9.1.168.192.IN-ADDR.ARPA.": false, "10.in-addr.arpa.": false, "d.f.ip6.arpa.": false, "alias.test.": false, "1.2.0.192.in-addr.arpa.": true, "files.test.": true,
	} {
		for _, kind := range []dnsmessage.Type{dnsmessage.TypePTR, dnsmessage.TypeSOA, dnsmessage.TypeTXT} {
			asked = 0
			var m dnsmessage.Message
			if err := m.Unpack(r.answer(t.Context(), question(t, name, kind))); err != nil {
				t.Fatal(err)
			}
			if (m.RCode == dnsmessage.RCodeSuccess) != want || (len(m.Answers) > 0) != want || asked == 0 && (want || name == "alias.test.") || asked > 0 && !want && name != "alias.test." {
				t.Errorf("%s %v: %+v, asked %d times", name, kind, m, asked)
			}
		}
	}
}

func TestMalformedQuestions(t *testing.T) {
	response := question(t, "files.test.", dnsmessage.TypeA)
	response[2] |= 0x80
	twice := append([]byte{}, question(t, "files.test.", dnsmessage.TypeA)...)
	twice[5] = 2
	notify := append([]byte{}, question(t, "files.test.", dnsmessage.TypeA)...)
	notify[2] |= 4 << 3
	none := append([]byte{}, question(t, "files.test.", dnsmessage.TypeA)[:12]...)
	none[5] = 0
	for name, c := range map[string]struct {
		message []byte
		code    dnsmessage.RCode
		silent  bool
	}{
		"nothing":       {nil, 0, true},
		"short":         {[]byte{1, 2, 3}, 0, true},
		"a response":    {response, 0, true},
		"two questions": {twice, dnsmessage.RCodeFormatError, false},
		"no question":   {none, dnsmessage.RCodeFormatError, false},
		"notify":        {notify, dnsmessage.RCodeNotImplemented, false},
	} {
		answer := known.answer(t.Context(), c.message)
		if c.silent {
			if answer != nil {
				t.Errorf("%s: %x", name, answer)
			}
			continue
		}
		var m dnsmessage.Message
		if err := m.Unpack(answer); err != nil || m.RCode != c.code {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

func TestQuestionsInAStream(t *testing.T) {
	ours, theirs := net.Pipe()
	go known.serveStream(t.Context(), theirs)
	for range 2 {
		q := question(t, "files.test.", dnsmessage.TypeA)
		if _, err := ours.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(q))), q...)); err != nil {
			t.Fatal(err)
		}
		var head [2]byte
		if _, err := io.ReadFull(ours, head[:]); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, binary.BigEndian.Uint16(head[:]))
		var m dnsmessage.Message
		if _, err := io.ReadFull(ours, answer); err != nil || m.Unpack(answer) != nil || len(m.Answers) != 1 {
			t.Fatalf("%x, %v", answer, err)
		}
	}
	ours.Write([]byte{0xff, 0xff})
	if _, err := ours.Read(make([]byte, 1)); err == nil {
		t.Error("a question of 65535 bytes does not end the stream")
	}
}

// FuzzAnswer checks that every answer is a message that answers the question, whatever the question is.
func FuzzAnswer(f *testing.F) {
	f.Add(question(f, "files.test.", dnsmessage.TypeA))
	f.Add(question(f, "none.test.", dnsmessage.TypeHTTPS))
	f.Add([]byte("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01")) // a name that is itself
	f.Add([]byte("\x00\x01\x01\x00\xff\xff\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, message []byte) {
		answer := known.answer(t.Context(), message)
		if answer == nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(answer); err != nil || !m.Response || m.ID != binary.BigEndian.Uint16(message) {
			t.Errorf("%x: %x, %v", message, answer, err)
		}
	})
}
