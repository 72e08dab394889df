// Package egress is the other end of a prison's only network interface: the one way out.
//
// The interface inside is an Ethernet device, tap(4) or one of a pair, and its other end is a descriptor in a process on the host. There an
// [Engine], a TCP/IP stack in user space (gVisor's), takes every packet. It routes none: for each connection that a program
// inside makes, the engine makes one of its own and copies what comes, or refuses with a reset, which the program sees in
// connect(2). Datagrams go the same way, or are answered with "port unreachable". DNS questions are answered by the engine
// itself. Nothing listens on the host, and programs inside need no proxy and no settings.
//
// Each name gets an address of its own, from a range that no public network has ([RFC 2544]), so that a connection shows for which
// name the program asked. The address that the name has in the world is looked up when a program connects, and never seen
// inside.
//
// What may be reached is decided by a [Policy] of rules, by name and port, before anything is looked up. Then the name is looked
// up once, and [Vet] checks each address. If one is not public, or is this machine's own for the kernel at the moment of connecting,
// the name is refused. In an open network every public address is allowed that no rule denies.
//
// In a network by names, TLS at port 443 must name the same server ([ReadHello]) and hide no other, and each request at port 80
// has a decision of its own. Clients of both are told about a refusal: by an alert, or by an answer with the status 403. Other
// connections are refused with a reset, and datagrams with "port unreachable".
//
// Where rules are about methods or paths, requests inside TLS are seen, too: the engine answers in the place of the server, with a
// certificate that programs inside trust (package authority), and makes a connection with TLS of its own, which must prove the
// server's name to this machine. A path is compared only if it has one meaning, and a denial counts for each way in which a server may
// read it (package request). Headers by which servers replace what was decided about are removed. Servers without such rules are not
// answered for.
//
// Records of connections and refusals wait in this process until its holder has written them (package control). While the
// holder cannot write, no connection is made. New rules end the connections that they do not allow.
//
// Everything that comes from inside is an attacker's: frames, questions, names.
//
// [RFC 2544]: https://www.rfc-editor.org/rfc/rfc2544
package egress
