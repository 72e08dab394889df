# C: credentials. The variables KEY, SCOPED, LIMITED, PLAIN and BAD have placeholders. The values never come inside.
my ($key, $scoped, $limited, $plain) = map { $ENV{$_} // 'none' } 'KEY', 'SCOPED', 'LIMITED', 'PLAIN';
sub keyed {
	my ($head, %o) = @_;
	my $host = $o{host} // 'key.test';
	return https($host, target => '/key', head => "Host: $host\r\n$head", until => qr/(?!)/, %o);
}

# echoed HEADERS, PATH asks a server to send back what it got, and reports whether the value came.
sub echoed {
	my ($head, $path) = @_;
	my ($s, $problem) = secured('key.test');
	return $problem if $problem;
	put($s, "GET $path HTTP/1.1\r\nHost: key.test\r\n${head}Connection: close\r\n\r\n");
	my ($said, $why) = get($s, qr/(?!)/);
	return $said =~ /THE-REAL|QmVhcmVyIFRIRS1SRUFM/ ? "works: $&" : $said =~ /^HTTP/ ? 'cut' : $why;
}
sub bearer { return "Authorization: Bearer $_[0]\r\n"; }
my $ours = bearer($key);
my $own = 'Bearer sk-the-own-key-of-the-agent';
row C01 => 'the placeholder where it belongs', '200', sub { keyed($ours) };
row C02 => 'an answer with the value', '^cut$', sub { echoed($ours, '/echo') };
row C03 => 'an answer with the value in base64', '^cut$', sub { echoed($ours, '/b64') };
row C04 => 'a key of the agent\'s own', '403', sub { keyed("Authorization: $own\r\n") };
row C05 => 'such a key in another header', '403', sub { keyed("X-Api-Key: $own\r\n") };
row C06 => 'the placeholder and a key of the agent\'s', '403', sub { keyed("${ours}Authorization: $own\r\n") };
row C07 => 'a request without a key', '200', sub { keyed('') };
row C08 => 'the placeholder in another header', '200', sub { keyed("X-Api-Key: $key\r\n") };
row C09 => 'the placeholder as a password', '200', sub { require MIME::Base64; keyed('Authorization: Basic ' . MIME::Base64::encode("u:$key", '') . "\r\n") };
row C10 => 'two headers with different keys', '403', sub { keyed("${ours}X-Api-Key: $own\r\n") };
row C11 => 'a header that claims the key ends here', '200', sub { keyed("${ours}Connection: Authorization\r\n") };
row C12 => 'another Host with the placeholder', '403', sub { keyed('', head => "Host: evil.test\r\n$ours") };
row C13 => 'another authority with the placeholder, HTTP/2', '403', sub { http2('key.test', 'evil.test', '/key', authorization => "Bearer $key") };
row C14 => 'the placeholder without TLS', '403', sub { http('key.test', target => '/key', head => "Host: key.test\r\n$ours") };
row C15 => 'a redirect to another host', '403', sub { our $marker; https('paths.test', target => "/pub/$marker", head => "Host: paths.test\r\n$ours") };
row C16 => 'a redirect to the host without TLS', '302 403', sub { join ' ', keyed($ours, target => '/redirect?to=http://key.test/key', until => qr/\r\n\r\n/), http('key.test', head => "Host: key.test\r\n$ours") };
row C17 => 'the placeholder for another host', '403', sub { our $marker; keyed($ours, host => 'limited.test', target => "/try/$marker") };
row C18 => 'the placeholder in a query, and in a body', '403 unchanged', sub {
	my $query = keyed('', target => "/key?key=$key");
	my ($s, $problem) = secured('key.test');
	return $problem if $problem;
	put($s, "POST /body HTTP/1.1\r\nHost: key.test\r\nContent-Length: " . length($key) . "\r\nConnection: close\r\n\r\n$key");
	my ($said) = get($s, qr/\n\r?\n.*\Q$key/s);
	return "$query " . ($said =~ /\n\r?\n.*\Q$key/s ? 'unchanged' : 'changed');
};
row C19 => 'an answer that unpacks to a gigabyte, with a key', '^(200|502)$', sub { keyed($ours, target => '/pub/bomb') };
row C20 => 'headers that replace the path, and forwarded ones', '200', sub { our $marker; keyed("${ours}X-Original-URL: /try/$marker\r\nX-HTTP-Method-Override: PUT\r\n", target => '/pub/headers') =~ s/works/200/r };
row C21 => 'an answer that is packed to hide the value', '^cut$', sub { echoed("${ours}Accept-Encoding: gzip\r\n", '/zipped') };
row C22 => 'another port in Host', '403', sub { keyed('', head => "Host: key.test:8080\r\n$ours") };
row C23 => 'an absolute URI', '403', sub { keyed($ours, target => 'https://key.test/key') };
row C24 => 'CONNECT inside TLS', '403|400|405', sub { keyed('', text => "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n$ours\r\n") };
row C25 => 'TLS for a denied name at the address of the host with a key', 'denied', sub { tls('key.test', names => ['evil.test']) };
row C26 => 'wget trusts the network', 'works', sub { command('wget', '-qO-', 'https://key.test/ping') };
row C27 => 'python trusts the network', 'works', sub { command('python3', '-c', q{'import urllib.request as u; u.urlopen("https://key.test/ping").read()'}) };
row C28 => 'node trusts the network', 'works', sub { command('node', '-e', q{'fetch("https://key.test/ping").then(r => process.exit(r.ok ? 0 : 1))'}) };
row C29 => 'git trusts the network', 'works', sub { command('git', 'ls-remote', 'https://key.test/own.git') };
# Java has certificates of its own, and does not trust the network. mode=base is for such programs: the network speaks TLS in their place.
row C30 => 'a program that trusts no further certificate', '^200 403$', sub { join ' ', map { http('plain.test', target => '/key', head => "Host: plain.test\r\n$_", until => qr/(?!)/) } bearer($plain), "Authorization: $own\r\n" };
row C31 => 'a WebSocket with the placeholder', 'works', sub {
	my ($s, $problem) = secured('key.test');
	return $problem if $problem;
	put($s, "GET /socket HTTP/1.1\r\nHost: key.test\r\n${ours}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
	my ($said, $why) = get($s, qr/\r\n\r\n/);
	return answer($said, $why) unless $said =~ / 101 /;
	put($s, 'echo');
	return (get($s, 4))[0] eq 'echo' ? 'works' : 'no echo';
};
row C32 => 'the value in a file, or in a process', '^none$', sub {
	my $found = qx{grep -rlsa -e 'THE-REAL-[K]EY' /etc /tmp /run /dev/shm /workspace ~ /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null};
	$found =~ s/\n/ /g;
	return $found || 'none';
};
row C36 => 'a credential whose source fails has no variable', '^none$', sub { defined $ENV{GONE} ? "GONE=$ENV{GONE}" : 'none' };
row C37 => 'a host with a key at a private address', 'closed|denied|reset|403', sub { keyed(bearer($ENV{BAD} // 'none'), host => 'keylan.test') };
row C38 => 'a path and a method that the credential is not for', 'works 403 403', sub {
	my $head = bearer($scoped);
	join ' ', keyed($head, host => 'scoped.test', target => '/v1/ping'), keyed($head, host => 'scoped.test', target => '/v1x/key'), keyed($head, host => 'scoped.test', target => '/v1/ping', method => 'DELETE');
};
row C39 => 'a push with a token of the agent\'s own', '403', sub { our $marker; https('paths.test', method => 'POST', target => "/pub/r.git/git-receive-pack?$marker", head => "Host: paths.test\r\nAuthorization: $own\r\n") };
row C40 => 'publishing: PUT, and a mutation', '403 403', sub { our $marker; join ' ', map { keyed(bearer($scoped), host => 'scoped.test', method => $_, target => "/v1/$marker") } 'PUT', 'POST' };
row C41 => 'git\'s first request, which has no key', '200', sub { keyed('', target => '/own.git/info/refs?service=git-upload-pack') };
row C42 => 'a second token for the same host', '403', sub { keyed(bearer('ghs_a-scoped-token-that-the-server-gave')) };
row C43 => 'the limit of requests a day', '^200 200 429$', sub { join ' ', map { keyed(bearer($limited), host => 'limited.test') } 1 .. 3 };
