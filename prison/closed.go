package prison

// Block is a range of IPv4 addresses with the same first bits. It is not of package net, which would be initialised too late in the first
// process of a native prison.
type Block struct {
	Address [4]byte
	Bits    int // number of these bits
}

// Closed lists the IPv4 addresses that an open network never reaches, except a backend's own name server: the host's
// local addresses, private networks, the addresses at which clouds give out a machine's credentials, and multicast
// and broadcast. IPv6 is closed completely.
var Closed = []Block{
	{[4]byte{0}, 8},
	{[4]byte{10}, 8},       // RFC 1918
	{[4]byte{100, 64}, 10}, // RFC 6598, and the metadata of Alibaba Cloud
	{[4]byte{127}, 8},
	{[4]byte{168, 63, 129, 16}, 32}, // Azure's WireServer
	{[4]byte{169, 254}, 16},         // RFC 3927, and most clouds' metadata
	{[4]byte{172, 16}, 12},          // RFC 1918
	{[4]byte{192, 0, 0}, 24},        // RFC 6890, and the metadata of Oracle Cloud
	{[4]byte{192, 168}, 16},         // RFC 1918
	{[4]byte{198, 18}, 15},          // RFC 2544
	{[4]byte{224}, 4},
	{[4]byte{240}, 4},
}
