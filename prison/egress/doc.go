// Package egress is a prison's only way out: it makes the connections of programs inside that the rules allow.
//
// Begin with [Engine]: connect in stack_linux.go takes a connection, reach in guard_linux.go decides about it and connects it to the
// world, and carry copies its bytes. A [Policy] decides, by its [Rule] values. Package control describes how the host steers the engine.
//
// The interface inside is an Ethernet device, tap(4) or one of a veth(4) pair. Its other end is a descriptor in a process on the host,
// where an Engine, a TCP/IP stack in user space (gVisor's), reads every packet. The engine routes no packets. For each connection that a
// program inside makes, it makes a connection of its own and copies the bytes, or refuses with a reset, which the program sees in
// connect(2). It treats datagrams in the same way, but refuses them with "port unreachable". It answers DNS questions itself. No port is
// open on the host, and programs inside need no proxy and no settings.
//
// Each name gets its own address inside, from a range that no public network has ([RFC 2544]), so that a connection shows for which name
// the program asked. The engine looks up the name's address in the world when a program connects. Programs inside never see that address.
//
// A Policy decides by name and port before any look-up. Then the engine looks the name up once, and [Vet] checks each address. If one is
// not public, or is this machine's own according to the kernel just before connecting, the engine refuses the name. An open network
// allows every public address that no rule denies.
//
// In any other network, a TLS client at port 443 must name the same server (package hello) and hide no other name, and the engine decides
// about each request at port 80. It refuses with an alert in TLS, and with the status 403 in HTTP.
//
// If rules are about methods or paths, or a server has a credential (package credential), the engine sees requests inside TLS, too. It
// answers in place of the server, with a certificate that programs inside trust (package authority), and makes its own TLS connection, in
// which the server must prove its name to this machine. It compares only paths that have one meaning, and a rule that denies applies to
// every way in which a server may read the path (package request). It removes headers with which some servers replace the method, the
// path or the host. It does not decrypt connections to other servers.
//
// The engine keeps records of connections and refusals (package pending) until its holder, the process that steers it, has written them
// (package ledger). While the holder cannot write, the engine makes no connection. New rules end the connections that they do not allow.
//
// Frames, questions, names and all other input from inside are an attacker's.
//
// [RFC 2544]: https://www.rfc-editor.org/rfc/rfc2544
package egress
