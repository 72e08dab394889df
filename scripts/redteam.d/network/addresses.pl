# A: addresses.
my @notations = ($public, '3325256714', '0306.063.0144.012', '0xc6.0x33.0x64.0xa', '198.51.25610', '198.3368970', "::ffff:$public", "::$public", "64:ff9b::$public",
	'2002:c633:640a::1', 'fe80::1%eth0', "$public.", '198.051.100.010', '١٩٨.51.100.10', '１９８.51.100.10', '0xc633640a', '[::ffff:c633:640a]');
for my $i (0 .. $#notations) {
	my $id = sprintf 'A%02d', $i + 1;
	row $id => "the address of an allowed host, written $notations[$i]", "^($refused|a proxy.*|$none)\$", sub {
		my $seen = tls('files.test', at => $notations[$i]);
		return $seen =~ /works/ ? $seen : (relay("$notations[$i]:443") =~ /(a proxy.*)/ ? "works: $1" : $seen);
	};
}
row A20 => 'proxy: SOCKS with an IPv4 address', $none, sub { socks(1, inet_aton($public)) };
row A21 => 'proxy: SOCKS with a mapped IPv6 address', $none, sub { socks(4, ("\0" x 10) . "\xff\xff" . inet_aton($public)) };
row A22 => 'an address, port 443', 'refused', sub { tls('files.test', at => $public) };
row A23 => 'an address, port 80', 'refused', sub { http('files.test', at => $public) };
row A24 => 'metadata of a cloud', 'refused', sub { http('169.254.169.254') };
row A25 => 'a private address', 'refused', sub { http('10.9.9.9') };
row A26 => 'the host\'s loopback', $refused, sub { raw('127.0.0.1', 9000) };
row A27 => 'the host\'s own address', 'refused', sub { raw('198.51.100.1', 9001) };
row A28 => 'gateway and resolver, another port', 'refused refused', sub { join ' ', raw('10.0.2.2', 9000), raw('10.0.2.3', 9000) };
row A29 => '0.0.0.0', $refused, sub { raw('0.0.0.0', 9000) };
my @closed = (['metadata.test', 'metadata'], ['lan.test', 'a private address'], ['loopback.test', 'loopback'], ['host.test', 'the host\'s own address'],
	['mapped.test', 'metadata, mapped into IPv6'], ['nat64.test', 'metadata behind NAT64'], ['sixtofour.test', 'a private address behind 6to4'],
	['local6.test', 'a unique local address'], ['loopback6.test', '::1'], ['both.test', 'a public and a private address'],
	['shared.test', 'carrier-grade NAT'], ['zero.test', '0.0.0.0'], ['azure.test', 'a cloud\'s wire server']);
for my $i (0 .. $#closed) {
	row 'A' . (30 + $i) => "an allowed name of $closed[$i][1]", '403', sub { http($closed[$i][0]) };
}
row A45 => 'an address that changes after the check', '^((works|403) ?){6}$', sub { join ' ', map { http('rebind.test') } 1 .. 6 };
row A46 => 'an address that stands for no name', 'refused', sub { raw('198.18.200.200', 443) };
row A47 => 'a private address by intent, no other port', 'works refused', sub { join ' ', raw('db.test', 5432), raw('db.test', 9000) };
row A48 => 'documentation ranges are not closed', 'works', sub { http('files.test') };
our $world_is_given;
my $late = 'an address that the host got after the start';
if ($world_is_given) { untried A49 => $late, 'only root can give the host another address'; }
else { row A49 => $late, '403', sub { http('late.test') }; }
for my $closed ('100.100.100.200', '168.63.129.16', '192.0.0.192', '172.16.5.5', '192.168.7.7') {
	row "A50-$closed" => "a closed address, $closed", 'refused', sub { http($closed) };
}
