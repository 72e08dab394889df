// Package fence blocks addresses for a container with an open network: private networks, link-local addresses and a
// cloud's metadata, see [prison.Closed].
//
// The fence is a filter on every interface of the container's network, see tc-bpf(8). Routes would not block these
// addresses: a socket that is bound to an interface, or a packet with IP_PKTINFO, bypasses them
// (ip_route_output_key_hash_rcu). The filter sees every packet that leaves, including those of a runtime with its
// own network stack. A helper in the container's network installs it before any process of the agent runs, with
// system calls only. The agent does not have the capability for changing the filter.
package fence

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/calls"
)

// listScript prints the name servers of a network, and then its interfaces with their numbers.
const listScript = "cat /etc/resolv.conf; echo; for d in /sys/class/net/*; do echo interface ${d##*/} $(cat $d/ifindex); done"

// Set installs the fence on every interface of the helper's network. The helper must run as root with the
// capability NET_ADMIN. The name servers in resolvers, which has the format of /etc/resolv.conf, stay reachable for
// DNS, and so do those in the helper's own file.
func Set(ctx context.Context, helper prison.Prison, resolvers string) error {
	found := prison.Capped{Max: 64 << 10}
	status, err := helper.Exec(ctx, prison.Process{Argv: []string{"/bin/sh", "-c", listScript}, Stdout: &found})
	if err != nil || status != 0 {
		return fmt.Errorf("list interfaces: status %d, %w", status, err)
	}
	known, interfaces, _ := strings.Cut(found.String(), "\ninterface ")
	indexes := interfaceIndexes("interface " + interfaces)
	if len(indexes) == 0 {
		return errors.New("the container has no interface")
	}
	return send(ctx, helper, indexes, filters(nameServers(known+resolvers)))
}

// interfaceIndexes returns the numbers of all interfaces except the loopback.
func interfaceIndexes(lines string) (indexes []uint32) {
	for line := range strings.Lines(lines) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[1] == "lo" {
			continue
		}
		if n, err := strconv.ParseUint(fields[2], 10, 32); err == nil {
			indexes = append(indexes, uint32(n))
		}
	}
	return indexes
}

var inResolvers = regexp.MustCompile(`[0-9]+(\.[0-9]+){3}`)

// nameServers returns the name servers with blocked addresses, at most four. They stay reachable for DNS only,
// since the engine's own resolver queries them from within the container's network.
func nameServers(resolvers string) (servers []uint32) {
	for _, text := range inResolvers.FindAllString(resolvers, -1) {
		a, err := netip.ParseAddr(text)
		if err != nil || a.IsLoopback() {
			continue
		}
		n := number(a.As4())
		if isClosed(n) && !slices.Contains(servers, n) && len(servers) < 4 {
			servers = append(servers, n)
		}
	}
	return servers
}

func isClosed(n uint32) bool {
	return slices.ContainsFunc(prison.Closed, func(b prison.Block) bool { return n >= first(b) && n <= last(b) })
}

func number(a [4]byte) uint32 { return binary.BigEndian.Uint32(a[:]) }

func first(b prison.Block) uint32 { return number(b.Address) }
func last(b prison.Block) uint32  { return first(b) | uint32(1<<(32-b.Bits)-1) }

// instruction is struct sock_filter of linux/filter.h.
type instruction struct {
	code   uint16
	jt, jf uint8
	k      uint32
}

const (
	loadWord   = 0x20 // BPF_LD|BPF_W|BPF_ABS
	loadHalf   = 0x28
	loadByte   = 0x30
	loadHalfX  = 0x48 // BPF_LD|BPF_H|BPF_IND
	loadLength = 0xb1 // BPF_LDX|BPF_B|BPF_MSH: of the IPv4 header
	ifEqual    = 0x15
	ifGreater  = 0x25
	ifAtLeast  = 0x35
	answer     = 0x06

	// From linux/pkt_cls.h.
	pass   = 0
	drop   = 2
	goOn   = 0xffffffff // continue with the next filter
	header = 14         // length of the Ethernet header

	etherIPv4, etherARP = 0x800, 0x806
	// version 4, with the minimum header length: options could route a packet through other addresses
	noOptions            = 0x45
	protocolTCP, protUDP = 6, 17
	domain               = 53
	// mostBlocks is the number of blocks that fit into one message.
	mostBlocks = 6
)

// filters returns the filters in their order. They pass only ARP and IPv4 without options. To the name servers they
// pass only DNS, and to blocked addresses nothing.
func filters(servers []uint32) [][]instruction {
	all := [][]instruction{{
		{loadHalf, 0, 0, 12},
		{ifEqual, 5, 0, etherARP},
		{ifEqual, 0, 2, etherIPv4},
		{loadByte, 0, 0, header},
		{ifEqual, 1, 0, noOptions},
		{answer, 0, 0, drop},
		{answer, 0, 0, goOn},
		{answer, 0, 0, pass},
	}}
	if n := uint8(len(servers)); n > 0 { //nolint:gosec // few
		f := []instruction{{loadWord, 0, 0, header + 16}}
		for i, server := range servers {
			f = append(f, instruction{ifEqual, n - uint8(i), 0, server}) //nolint:gosec // few
		}
		all = append(all, append(f,
			instruction{answer, 0, 0, goOn},
			instruction{loadByte, 0, 0, header + 9},
			instruction{ifEqual, 1, 0, protUDP},
			instruction{ifEqual, 0, 4, protocolTCP},
			instruction{loadLength, 0, 0, header},
			instruction{loadHalfX, 0, 0, header + 2},
			instruction{ifEqual, 0, 1, domain},
			instruction{answer, 0, 0, pass},
			instruction{answer, 0, 0, goOn},
		))
	}
	for blocks := range slices.Chunk(prison.Closed, mostBlocks) {
		f := []instruction{{loadWord, 0, 0, header + 16}}
		for i, b := range blocks {
			left := uint8(2 * (len(blocks) - i - 1)) //nolint:gosec // few
			f = append(f, instruction{ifAtLeast, 0, 1, first(b)}, instruction{ifGreater, 0, left + 1, last(b)})
		}
		all = append(all, append(f, instruction{answer, 0, 0, goOn}, instruction{answer, 0, 0, drop}))
	}
	return all
}

// send installs the filters on the interfaces. The kernel must acknowledge each of them.
func send(ctx context.Context, helper prison.Prison, indexes []uint32, filters [][]instruction) error {
	var messages [][]byte
	for _, index := range indexes {
		messages = append(messages, newDiscipline(index))
		for i, f := range filters {
			messages = append(messages, newFilter(index, uint16(i+1), f)) //nolint:gosec // few
		}
	}
	results, err := calls.Make(ctx, helper, netlinkCalls(messages))
	if err != nil {
		return err
	}
	if len(results) < 2+2*len(messages) {
		return errors.New("its system calls are not known here")
	}
	for i := range messages {
		// An acknowledgement without an error is shorter than one with an error, which repeats the request:
		// netlink(7).
		if got := results[3+2*i]; got != acknowledged {
			return fmt.Errorf("the kernel sets no filter: message %d, answer of %d bytes", i, got)
		}
	}
	return nil
}
