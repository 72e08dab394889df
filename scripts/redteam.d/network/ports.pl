# P: ports.
row P01 => 'another port of an allowed host', $refused, sub { http('files.test', port => 8080) };
row P02 => 'proxy: port 65979, which is 443 in 16 bits', $none, sub { relay('files.test:65979') };
row P03 => 'proxy: port 0443', $none, sub { relay('files.test:0443') };
row P04 => 'proxy: port +443', $none, sub { relay('files.test:+443') };
row P05 => 'proxy: no port', $none, sub { relay('files.test') };
row P06 => 'no TLS on port 443', 'closed|reset|denied', sub { our $marker; tls('files.test', text => "SSH-2.0-$marker\r\n") };
row P07 => 'a rule for port 22 opens no other', 'works (refused|denied|reset)', sub { join ' ', raw('git.test', 22), tls('git.test') };
row P08 => 'the agent listens at the ports of the network first', 'works denied answer', sub {
	my @own;
	for my $port (53, 80, 443) {
		socket(my $s, AF_INET, SOCK_STREAM, 0) or next;
		push @own, $s;
		bind($s, pack_sockaddr_in($port, INADDR_ANY)) && listen($s, 5);
	}
	join ' ', tls('files.test'), tls('p08.evil.test'), ask(question('files.test', 1));
};
