# T: TLS.
row T01 => 'the name of a denied host', 'denied', sub { tls('files.test', names => ['evil.test']) };
row T02 => 'the name of another allowed host', 'denied', sub { tls('files.test', names => ['api.test']) };
row T03 => 'no name', 'denied', sub { tls('files.test', names => []) };
row T04 => 'the name in capitals', 'works', sub { tls('files.test', names => ['FILES.TEST']) };
row T05 => 'an encrypted hello', 'denied', sub { tls('files.test', hidden => 1) };
row T06 => 'a hello with one byte in a packet', 'works', sub { tls('files.test', bytes => 1) };
row T07 => 'a hello in records of 7 bytes', 'works', sub { tls('files.test', records => 7) };
row T08 => 'a name after 12 KB', 'works', sub { tls('files.test', padding => 12_000) };
row T09 => 'a hello in small records, a denied name', 'denied', sub { tls('files.test', names => ['evil.test'], records => 7) };
row T10 => 'two names', 'denied|closed|reset', sub { tls('files.test', names => ['files.test', 'evil.test']) };
row T11 => 'NUL in the name', 'denied|closed|reset', sub { tls('files.test', names => ["evil.test\0.files.test"]) };
row T12 => 'an address as the name', 'denied|closed|reset', sub { tls('files.test', names => [$public]) };
row T13 => 'a client that says nothing', 'closed|reset|denied', sub { tls('files.test', text => '') };
row T14 => 'a denied host: TLS, HTTP, another port', 'denied 403 refused', sub { join ' ', tls('t14.evil.test'), http('t14.evil.test'), raw('t14.evil.test', 9000) };

# Requests to paths.test are decided about inside TLS: the rule is about its paths below /pub.
row T16 => 'another Host inside TLS that is seen, HTTP/1 and HTTP/2', 'works 403 works 403', sub {
	our $marker;
	join ' ', https('paths.test', target => '/pub/ping'), https('paths.test', target => "/pub/$marker", head => "Host: evil.test\r\n"),
		http2('paths.test', 'paths.test', '/pub/ping'), http2('paths.test', 'evil.test', "/pub/$marker");
};
row T17 => 'a server with an expired certificate, of another name, of a stranger', '^502 502 502$', sub {
	our $marker;
	join ' ', map { https("$_.test", target => "/pub/$marker", head => "Host: $_.test\r\nAuthorization: Bearer " . ($ENV{BAD} // 'none') . "\r\n") } 'expired', 'nameless', 'stranger';
};
row T18 => 'the authority of the network may vouch for its names only', '^(?=.*paths\.test)(?!.*(files|evil|api)\.test).*all critical$', sub {
	my (%names, $loose);
	# One process reads all certificates: a bundle has more than a hundred.
	my $bundle = trusted();
	my $all = qx{openssl crl2pkcs7 -nocrl -certfile '$bundle' | openssl pkcs7 -print_certs -text -noout};
	for my $text (split /^Certificate:/m, $all) {
		next unless $text =~ /Name Constraints: ?(critical)?(.*?)\n {8}(?: {4})?X509v3|Name Constraints: ?(critical)?(.*)/s;
		my ($critical, $permitted) = ($1 // $3, $2 // $4);
		my @permitted = $permitted =~ /DNS:(\S+)/g;
		next unless grep { /test$/ } @permitted; # public authorities have constraints, too
		$loose = 1 unless $critical;
		$names{$_} = 1 for @permitted;
	}
	return join(' ', sort keys %names) . ($loose ? ' some not critical' : ' all critical');
};
row T19 => 'the key of that authority is in no file and no process inside', '^none$', sub {
	my $found = qx{grep -rlsaE -e '^-----BEGIN ([A-Z]+ )?PRIVATE KEY' /etc/ssl /etc/pki /tmp /run /dev/shm /workspace ~ /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null};
	$found =~ s/\n/ /g;
	return $found || 'none';
};
row T20 => 'a server that wants a certificate of the client', '^502$', sub { our $marker; https('asks.test', target => "/pub/$marker") };
