// Package reverse finds the names that stand for addresses in DNS messages. Begin with [Concerns].
package reverse

import (
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// Concerns reports whether a message asks or says something about the name of a hidden address, also as the target of another name, or cannot
// be read. Resolvers know such names of this machine and its network: that of systemd gives this machine's name to addresses like 127.0.0.2.
func Concerns(message []byte, hidden func(netip.Addr) bool) bool {
	var p dnsmessage.Parser
	_, err := p.Start(message)
	questions, failed := p.AllQuestions()
	if err != nil || failed != nil {
		return true
	}
	about := func(name dnsmessage.Name) bool {
		a := Address(name.String())
		return a.IsValid() && hidden(a)
	}
	if slices.ContainsFunc(questions, func(q dnsmessage.Question) bool { return about(q.Name) }) {
		return true
	}
	for {
		h, err := p.AnswerHeader()
		if err != nil || about(h.Name) || p.SkipAnswer() != nil {
			return !errors.Is(err, dnsmessage.ErrSectionDone)
		}
	}
}

// Address returns the address that a name below in-addr.arpa (RFC 1035, section 3.5) or ip6.arpa (RFC 3596, section 2.5) stands for, or the
// first address of a zone there. The address is invalid for any other name.
func Address(name string) netip.Addr {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if below, ok := strings.CutSuffix(name, ".in-addr.arpa"); ok {
		if numbers := read(below, 10, 8, 4); len(numbers) > 0 {
			return netip.AddrFrom4([4]byte(pad(numbers, 4)))
		}
	}
	if below, ok := strings.CutSuffix(name, ".ip6.arpa"); ok {
		if digits := read(below, 16, 4, 32); len(digits) > 0 {
			var b [16]byte
			for i, d := range pad(digits, 32) {
				b[i/2] = b[i/2]<<4 | d
			}
			return netip.AddrFrom16(b)
		}
	}
	return netip.Addr{}
}

// read returns the numbers that the labels are, from the last label to the first. It ends at a label that is not a number.
func read(labels string, base, bits, most int) (numbers []byte) {
	for _, label := range slices.Backward(strings.Split(labels, ".")) {
		n, err := strconv.ParseUint(label, base, bits)
		if err != nil || len(numbers) == most {
			break
		}
		numbers = append(numbers, byte(n))
	}
	return numbers
}

func pad(numbers []byte, size int) []byte { return append(numbers, make([]byte, size-len(numbers))...) }
