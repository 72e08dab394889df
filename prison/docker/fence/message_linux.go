package fence

import (
	"encoding/binary"

	"github.com/git-airlock/git-airlock/prison/calls"

	"golang.org/x/sys/unix"
)

const (
	// acknowledged is the length of struct nlmsghdr and struct nlmsgerr: netlink(7).
	acknowledged = 36

	// From linux/pkt_sched.h and linux/pkt_cls.h.
	clsact        = 0xfffffff1
	clsactHandle  = 0xffff0000
	clsactEgress  = 0xfffffff3
	optionLength  = 4
	optionProgram = 5
	optionFlags   = 8
	directAction  = 1
)

// netlinkCalls returns the system calls that send messages of rtnetlink(7), and that read each answer into the
// place of its request.
func netlinkCalls(messages [][]byte) []calls.Call {
	const answerAt, room = calls.Pointer + 0x400, 0x400
	list := []calls.Call{
		// closes all other descriptors, so that the socket becomes descriptor 3
		{Number: unix.SYS_CLOSE_RANGE, Args: [6]uintptr{3, 1000}},
		{Number: unix.SYS_SOCKET, Args: [6]uintptr{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}},
	}
	for _, m := range messages {
		list = append(list,
			calls.Call{Number: unix.SYS_SENDTO, Args: [6]uintptr{3, calls.Pointer, uintptr(len(m))}, Data: m},
			calls.Call{Number: unix.SYS_RECVFROM, Args: [6]uintptr{3, answerAt, room}})
	}
	return list
}

// newDiscipline returns a message that lets an interface have filters.
func newDiscipline(index uint32) []byte {
	return message(unix.RTM_NEWQDISC, index, clsactHandle, clsact, 0, attribute(unix.TCA_KIND, []byte("clsact\x00")))
}

// newFilter returns a message that adds a filter for outgoing packets of an interface, after the filters with lower
// numbers.
func newFilter(index uint32, nth uint16, f []instruction) []byte {
	ne := binary.NativeEndian
	var program []byte
	for _, i := range f {
		program = ne.AppendUint16(program, i.code)
		program = append(program, i.jt, i.jf)
		program = ne.AppendUint32(program, i.k)
	}
	options := attribute(optionLength, ne.AppendUint16(nil, uint16(len(f)))) //nolint:gosec // few
	options = append(options, attribute(optionProgram, program)...)
	options = append(options, attribute(optionFlags, ne.AppendUint32(nil, directAction))...)
	all := ne.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ALL))
	return message(unix.RTM_NEWTFILTER, index, 0, clsactEgress, uint32(nth)<<16|uint32(all),
		attribute(unix.TCA_KIND, []byte("bpf\x00")), attribute(unix.TCA_OPTIONS, options))
}

// message returns struct nlmsghdr and struct tcmsg, followed by attributes.
func message(kind uint16, index, handle, parent, info uint32, attributes ...[]byte) []byte {
	ne := binary.NativeEndian
	body := make([]byte, 4, 200) // tcm_family and padding
	for _, n := range []uint32{index, handle, parent, info} {
		body = ne.AppendUint32(body, n)
	}
	for _, a := range attributes {
		body = append(body, a...)
	}
	head := ne.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body))) //nolint:gosec // short
	head = ne.AppendUint16(head, kind)
	head = ne.AppendUint16(head, unix.NLM_F_REQUEST|unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
	head = append(head, make([]byte, 8)...) // sequence number and port id: both 0
	return append(head, body...)
}

// attribute returns struct rtattr with its content, padded to a multiple of four bytes.
func attribute(kind uint16, content []byte) []byte {
	ne := binary.NativeEndian
	a := ne.AppendUint16(nil, uint16(unix.SizeofRtAttr+len(content))) //nolint:gosec // short
	a = append(ne.AppendUint16(a, kind), content...)
	return append(a, make([]byte, (4-len(a)%4)%4)...)
}
