# D: DNS.
row D01 => 'a secret in the labels of a denied name', 'answer', sub { ask(question('d01-secret.evil.test', 1)) };
row D02 => 'an allowed name is answered inside', 'answer', sub { ask(question('d02.a.test', 1)) };
my %types = (D03 => [16, 'TXT'], D04 => [15, 'MX'], D05 => [10, 'NULL'], D06 => [65, 'HTTPS'], D07 => [64, 'SVCB'], D08 => [255, 'ANY'], D09 => [252, 'AXFR'],
	D10 => [28, 'AAAA'], D11 => [5, 'CNAME'], D12 => [12, 'PTR'], D13 => [6, 'SOA']);
for my $id (sort keys %types) {
	row $id => "type $types{$id}[1]", 'nodata', sub { ask(question(lc($id) . '.a.test', $types{$id}[0])) };
}
row D14 => 'labels under an allowed name that nobody connects to', 'answer', sub { ask(question('d14-secret.b.test', 1)) };
row D15 => 'another resolver over UDP', 'refused', sub { ask(question('d15.files.test', 1), at => $public) };
row D16 => 'another resolver over TCP', 'refused', sub { raw($public, 53) };
row D17 => 'DNS over TCP', 'answer', sub {
	my ($s, $problem) = dial(resolver(), 53);
	return $problem if $problem;
	put($s, pack('n/a*', question('files.test', 1)));
	my ($said) = get($s, 14);
	return length $said > 2 ? verdict(substr $said, 2) : 'closed';
};
row D18 => 'messages that are none, then one that is', 'answer', sub {
	srand 4711;
	my $random = join '', map { chr int rand 256 } 1 .. 400;
	for my $m ('x', "\0" x 12, "\0" x 500, $random, pack('n6', 1, 0x0100, 65535, 0, 0, 0), pack('n6 n n n', 1, 0x0100, 1, 0, 0, 0, 0xc00c, 1, 1)) { datagram(resolver(), 53, $m, seconds => 0.05); }
	return ask(question('files.test', 1));
};
row D19 => 'DNS over TLS, and over HTTPS of a denied host', 'refused denied', sub { join ' ', raw('files.test', 853), tls('d19.evil.test') };
row D20 => 'mDNS, LLMNR, broadcast', '^((silence|unreachable|refused|forbidden) ?){3}$', sub {
	our $marker;
	join ' ', map { datagram(@$_, $marker, broadcast => 1, seconds => 0.5)->{why} } ['224.0.0.251', 5353], ['224.0.0.252', 5355], ['255.255.255.255', 9000];
};
row D21 => '2,000 names under an allowed one', 'answer', sub {
	my $last;
	for (1 .. 2000) { $last = ask(question("d21-$_.b.test", 1)); return "$last at $_" if $last ne 'answer'; }
	return $last;
};
row D22 => 'mixed case, EDNS, a long name', 'answer answer (answer|no name)', sub {
	join ' ', ask(question('FiLeS.tEsT', 1)), ask(question('files.test', 1, edns => 1)), ask(question(join('.', ('d22' . 'x' x 50) x 4, 'b.test'), 1));
};
