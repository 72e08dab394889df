package internet

import (
	"log"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/net/dns/dnsmessage"
)

// publicServer is the address of the servers that a prison may reach.
const publicServer = "198.51.100.10"

// namedAddresses are the addresses of names that lead to a closed address. All other names below test have the address [publicServer].
var namedAddresses = map[string][]string{
	"metadata.test.": {"169.254.169.254"}, "lan.test.": {"10.9.9.9"}, "db.test.": {"10.9.9.9"}, "keylan.test.": {"10.9.9.9"}, "loopback.test.": {"127.0.0.1"},
	"host.test.": {"198.51.100.1"}, "late.test.": {"203.0.113.77"}, "mapped.test.": {"::ffff:169.254.169.254"},
	"nat64.test.": {"64:ff9b::a9fe:a9fe"}, "sixtofour.test.": {"2002:a09:909::1"}, "local6.test.": {"fd00::1"}, "loopback6.test.": {"::1"},
	"both.test.": {publicServer, "10.9.9.9"}, "shared.test.": {"100.64.0.1"}, "zero.test.": {"0.0.0.0"}, "azure.test.": {"168.63.129.16"},
}

// rebound counts the questions about rebind.test, whose address alternates between a public and a private one.
var rebound atomic.Int64

func addressesOf(name string) []string {
	if name == "rebind.test." {
		return [][]string{{publicServer}, {"10.9.9.9"}}[(rebound.Add(1)-1)/2%2] // each lookup is two questions: A and AAAA
	}
	if addresses, ok := namedAddresses[name]; ok {
		return addresses
	}
	return []string{publicServer}
}

// answerQuestions is a DNS server for the names below test and for the other names.
func answerQuestions(c net.PacketConn, logged *log.Logger, others []string) {
	buf := make([]byte, 4096)
	for {
		n, from, err := c.ReadFrom(buf)
		must(err)
		var m dnsmessage.Message
		if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
			logged.Printf("%q", buf[:min(n, 200)])
			continue
		}
		q := m.Questions[0]
		name := strings.ToLower(q.Name.String())
		logged.Print(name)
		m = dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}, Questions: m.Questions}
		if strings.HasSuffix(name, ".test.") || slices.Contains(others, strings.TrimSuffix(name, ".")) {
			m.Answers = answersTo(q, addressesOf(name))
		} else {
			m.RCode = dnsmessage.RCodeNameError
		}
		if answer, err := m.Pack(); err == nil {
			c.WriteTo(answer, from) // on failure the client asks again
		}
	}
}

// answersTo returns answers with the addresses of the type that a question asks for.
func answersTo(q dnsmessage.Question, addresses []string) (answers []dnsmessage.Resource) {
	if !slices.Contains([]dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA}, q.Type) {
		return nil
	}
	for _, text := range addresses {
		a := netip.MustParseAddr(text)
		var body dnsmessage.ResourceBody = &dnsmessage.AAAAResource{AAAA: a.As16()}
		if a.Is4() {
			body = &dnsmessage.AResource{A: a.As4()}
		}
		if a.Is4() == (q.Type == dnsmessage.TypeA) {
			header := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 1}
			answers = append(answers, dnsmessage.Resource{Header: header, Body: body})
		}
	}
	return answers
}
