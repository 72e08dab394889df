package prison

// Block is the IPv4 addresses that have their first bits in common. The package net would come late: see the first
// process of a native prison.
type Block struct {
	Address [4]byte
	Bits    int
}

// Closed are the IPv4 addresses that an open network never leads to, but for a backend's own name server: what is
// local to the host, private networks, the addresses at which clouds give out a machine's credentials, and what reaches
// everybody near by. IPv6 is closed altogether.
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
