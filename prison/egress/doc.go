// Package egress is the other end of a prison's only network interface: the one way out.
//
// The interface inside is an Ethernet device, tap(4), and its other end is a descriptor in a process on the host. There an
// [Engine], a TCP/IP stack in user space (gVisor's), takes every packet. It routes none: for each connection that a program
// inside makes, the engine makes one of its own and copies what comes, or refuses with a reset, which the program sees in
// connect(2). Datagrams go the same way, or are answered with "port unreachable". DNS questions are answered by the engine
// itself. Nothing listens on the host, and programs inside need no proxy and no settings.
//
// A name gets an address of its own, from a range that no public network has ([RFC 2544]): whoever connects to the address
// has named the host, and cannot misstate it. The address that the name has in the world is looked up when somebody
// connects, and never seen inside.
//
// What may be reached is for a [World] to say. [Internet] is all that is public: each address is vetted ([Vet]), and the
// kernel is asked whether it is this machine's own, at the moment of connecting.
//
// A [Policy] of rules decides by name: [ParseRule] reads them, and [ReadHello] finds the name that a TLS client says before
// anything is encrypted. No network of a prison uses them yet.
//
// Everything that comes from inside is an attacker's: frames, questions, names.
//
// [RFC 2544]: https://www.rfc-editor.org/rfc/rfc2544
package egress
