package wire

// Wiring describes a prison's interface to the process that has the other end. All addresses are IPv4. They are
// plain bytes, since package net/netip would delay a role's start, see [Conn].
type Wiring struct {
	MTU uint32
	// Inside is the address of the prison. Gateway and Resolver are addresses of the other end.
	Inside, Gateway, Resolver [4]byte
	Bits                      int     // the length of the prefix that these addresses share
	MAC                       [6]byte // MAC address of the other end
	Open                      bool    // every public address is allowed, where no rule denies it
}
