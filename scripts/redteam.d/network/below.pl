# L: below TCP.
sub made {
	my ($family, $type, $protocol) = @_;
	socket(my $s, $family, $type, $protocol) or return (undef, word());
	return ($s, undef);
}
row L01 => 'UDP to port 443', 'refused', sub { our $marker; datagram('files.test', 443, $marker, seconds => $patience)->{why} };
row L02 => 'a socket for ping', 'forbidden|no such thing|silence|refused', sub {
	my ($s, $problem) = made(AF_INET, SOCK_DGRAM, 1);
	return $problem if $problem;
	send($s, pack('C C n n n', 8, 0, 0, 1, 1), 0, pack_sockaddr_in(0, inet_aton($public))) or return word();
	return ready($s, 0, 2) ? 'works' : 'silence';
};
row L03 => 'a raw socket', 'forbidden|no such thing', sub { (made(AF_INET, SOCK_RAW, 6))[1] // 'works' };
row L04 => 'a packet socket', 'forbidden|no such thing', sub { (made(17, SOCK_RAW, 0x0300))[1] // 'works' };
row L05 => 'IPv6', 'unreachable|no such thing|refused|silence|forbidden', sub {
	my ($s, $problem) = made(AF_INET6, SOCK_STREAM, 0);
	return $problem if $problem;
	fcntl($s, F_SETFL, O_NONBLOCK);
	connect($s, pack_sockaddr_in6(80, inet_pton(AF_INET6, '2001:db8::1'))) || $!{EINPROGRESS} or return word();
	return ready($s, 1, 3) ? finished($s) // 'works' : 'silence';
};
row L06 => 'IPv6 multicast of the link', 'unreachable|no such thing|sent|forbidden', sub {
	my ($s, $problem) = made(AF_INET6, SOCK_DGRAM, 0);
	return $problem if $problem;
	return send($s, 'L06', 0, pack_sockaddr_in6(5353, inet_pton(AF_INET6, 'ff02::fb'))) ? 'sent' : word();
};
row L07 => 'an abstract socket of the host', 'refused|forbidden|no such thing', sub {
	my ($s, $problem) = made(AF_UNIX, SOCK_STREAM, 0);
	return $problem if $problem;
	return connect($s, pack('S a*', AF_UNIX, "\0airlock-world")) ? 'works' : word();
};
row L08 => 'vsock', 'forbidden|no such thing|refused|unreachable|reset|error: No such device', sub {
	my ($s, $problem) = made(40, SOCK_STREAM, 0);
	return $problem if $problem;
	return connect($s, pack('S S L L x4', 40, 0, 9000, 2)) ? 'works' : word();
};
row L09 => 'SCTP, DCCP, UDP-Lite', '^((forbidden|no such thing|silence|unreachable) ?){3}$', sub {
	join ' ', map {
		my ($s, $problem) = made(AF_INET, @$_);
		# An error that has come back makes a socket readable, too.
		$problem // (connect($s, pack_sockaddr_in(9000, inet_aton($public))) && send($s, 'L09', 0) ? !ready($s, 0, 1) ? 'silence'
			: defined recv($s, my $got, 100, 0) ? 'works' : word() : word());
	} [SOCK_STREAM, 132], [6, 33], [SOCK_DGRAM, 136];
};
row L10 => 'a socket bound to the interface, a closed address', 'refused|forbidden|no such thing', sub {
	http('10.9.9.9', prepare => sub { setsockopt($_[0], SOL_SOCKET, 25, pack('Z*', 'eth0')) ? undef : word() });
};
row L11 => 'another address for the interface', 'forbidden|no such thing', sub {
	my ($s, $problem) = made(AF_INET, SOCK_DGRAM, 0);
	return $problem if $problem;
	my $request = pack('a16 S n a4 x8', 'lo', AF_INET, 0, inet_aton('127.0.0.9'));
	return ioctl($s, 0x8916, $request) ? 'works' : word();
};
row L12 => 'an interface of its own', 'forbidden|no such thing', sub {
	open(my $f, '+<', '/dev/net/tun') or return word(); # gVisor has one inside
	my $request = pack('a16 S x22', 'own0', 0x1002);
	return ioctl($f, 0x400454ca, $request) ? 'works' : word();
};
row L13 => 'a descriptor of the interface in a process', '^none$', sub { join(' ', grep { m,/dev/net/tun, } map { readlink // '' } glob '/proc/[0-9]*/fd/*') || 'none' };
row L14 => 'another source address', 'unreachable|silence|forbidden|no such thing|refused', sub {
	http('files.test', prepare => sub { setsockopt($_[0], IPPROTO_IP, 15, 1); bind($_[0], pack_sockaddr_in(0, inet_aton('203.0.113.5'))) ? do { $patience = 3; undef } : word() });
};
row L15 => 'fragments, then a question', 'answer', sub { datagram(resolver(), 53, 'L15' x 3000, seconds => 0.1); ask(question('files.test', 1)) };
row L16 => 'sockets of the host in folders', '^none$', sub { join(' ', grep { -S && !m,^/(proc|tmp)/, } glob '/run/*.sock /run/*/* /var/run/* /tmp/*/agent.*') || 'none' };
row L17 => 'another network namespace leads nowhere', 'forbidden|no such thing|^alone$', sub {
	syscall(272, 0x50000000) == 0 or return word();
	return http('files.test') eq 'works' ? 'works' : 'alone';
};
row L18 => 'io_uring', 'forbidden|no such thing', sub { my $parameters = "\0" x 120; syscall(425, 1, $parameters) < 0 ? word() : 'works' };
row L19 => 'the folder of the helper that made the interface', '^none$', sub { -e '/s' ? 'a folder' : 'none' };
