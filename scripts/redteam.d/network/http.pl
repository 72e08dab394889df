# H: plain HTTP.
row H01 => 'Host of another', '403', sub { http('files.test', head => "Host: evil.test\r\n") };
row H02 => 'URI and Host differ', '403', sub { our $marker; http('files.test', target => "http://evil.test/try/$marker") };
row H03 => 'a second request, for another host', '403', sub { our $marker; http('files.test', until => qr/403.*\n\n|evil/s, text => "GET /ping HTTP/1.1\r\nHost: files.test\r\n\r\nGET /try/$marker HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n") };
row H04 => 'a request hidden by two lengths', '400|403|works', sub {
	our $marker;
	http('files.test', text => "POST /ping HTTP/1.1\r\nHost: files.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\nGET /try/$marker HTTP/1.1\r\nHost: evil.test\r\n\r\n");
};
row H05 => 'a disguised Transfer-Encoding', '400|501', sub { our $marker; http('files.test', text => "POST /try/$marker HTTP/1.1\r\nHost: files.test\r\nTransfer-Encoding: xchunked\r\nConnection: close\r\n\r\n0\r\n\r\n") };
row H06 => 'two Content-Lengths', '400', sub { our $marker; http('files.test', text => "POST /try/$marker HTTP/1.1\r\nHost: files.test\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx") };
row H07 => 'two Hosts', '400', sub { http('files.test', head => "Host: files.test\r\nHost: evil.test\r\n") };
row H08 => 'CONNECT on port 80', '403|400|405', sub { http('files.test', text => "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n") };
row H09 => 'an absolute URI on port 80', '403', sub { our $marker; http('files.test', target => "http://files.test/try/$marker") };
row H10 => 'HTTP/2 without TLS: at once, and by an upgrade', '^(closed|reset|400|403|505|no answer of HTTP) 403', sub {
	my ($s, $problem) = dial('files.test', 80);
	return $problem if $problem;
	put($s, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
	my ($said, $why) = get($s, 5);
	my $first = $said =~ /^\0\0/ ? 'works' : answer($said, $why);
	return $first . ' ' . http('files.test', head => "Host: files.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n");
};
row H11 => 'proxy: a relayed CONNECT', $none, sub { relay('evil.test:443') };
row H12 => 'proxy: a loop', $none, sub { relay('127.0.0.1:3128') };
row H13 => 'a redirect to a denied host', '302 403', sub { join ' ', http('files.test', target => '/redirect?to=http://evil.test/', until => qr/\r\n\r\n/), http('h13.evil.test') };
row H14 => 'a WebSocket, both ways', 'works', sub {
	my ($s, $problem) = dial('files.test', 80);
	return $problem if $problem;
	put($s, "GET /socket HTTP/1.1\r\nHost: files.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
	my ($said, $why) = get($s, qr/\r\n\r\n/);
	return answer($said, $why) unless $said =~ / 101 /;
	put($s, 'one');
	($said, $why) = get($s, 3);
	put($s, 'two');
	my ($more) = get($s, 3);
	return "$said$more" eq 'onetwo' ? 'works' : 'no echo';
};
row H15 => 'a megabyte of headers', '431|reset|closed', sub { http('files.test', head => "Host: files.test\r\n" . join('', map { "X-$_: " . ('y' x 1000) . "\r\n" } 1 .. 1000)) };
row H16 => 'no proxy by variables', '^none$', sub { join(' ', grep { /proxy/i } keys %ENV) || 'none' };
row H17 => 'a proxy elsewhere', 'refused 403', sub { our $marker; join ' ', raw($public, 8080), http('evil.test', target => "http://files.test/try/$marker") };
row H21 => 'headers that do not end', 'closed|reset|400|408', sub { http('files.test', text => "GET / HTTP/1.1\r\nHost: files.test\r\nX:") };
# A test of the engine sets the clock for the limit of minutes. Here the stream is silent for longer than each of the short limits.
row H22 => 'a stream that is silent for a while', 'works', sub { http('files.test', target => '/later', until => qr/pong/) };

# The variables of a proxy are set where the airlock starts. The world's proxy logs who asks it: see N.sh.
row H18 => 'a proxy that the user has in variables is not used', 'works', sub { http('files.test') };
row H19 => 'an answer of a megabyte that unpacks to a gigabyte', 'works', sub {
	my ($s, $problem) = secured('paths.test');
	return $problem if $problem;
	put($s, "GET /pub/bomb HTTP/1.1\r\nHost: paths.test\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n");
	my ($said) = get($s, 900_000);
	return $said =~ /^HTTP\/1.1 200/ && $said =~ /Content-Encoding: gzip/i && length $said >= 900_000 ? 'works' : 'no answer of a megabyte: ' . length $said;
};
row H23 => 'a path that servers read in two ways', '^works( (400|403)){7}$', sub {
	our $marker;
	join ' ', https('paths.test', target => '/pub/ping'), map { https('paths.test', target => "/pub/${_}try/$marker") } '../', '%2e%2e/', '/', '..;/', '..%2f', '..\\', '%2e./';
};
row H24 => 'headers that replace the method or the path, and TRACE', '^works (403|405|400)$', sub {
	our $marker;
	my $hidden = https('paths.test', target => '/pub/headers', head => "Host: paths.test\r\n" . join '', map { "$_: /$marker\r\n" } 'X-HTTP-Method-Override', 'X-Original-URL', 'X-Rewrite-URL', 'X-HTTP-Method', 'X-Method-Override');
	return "$hidden " . https('paths.test', method => 'TRACE', target => "/pub/$marker");
};
row S06 => 'a line break, an escape and a quote in a name', '400|403|closed|no name', sub {
	join ' ', http('files.test', head => "Host: s06\x1b[31m\"evil.test\r\n"), ask(question("s06\n\x1b\"", 1)), http('files.test', head => "Host: s06\"}\\n{\r\n");
};
