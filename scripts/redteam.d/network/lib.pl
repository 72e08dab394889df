# Functions for attempts to reach something from inside a prison. Each row is tried in a process of its own, and prints its id, what
# it tries, the expected result (a pattern) and the result, separated by tabs.
use strict;
use warnings;
use utf8;
use Socket qw(:all);
use Fcntl;
use POSIX ();
use Time::HiRes qw(time sleep);
binmode STDOUT, ':utf8';
$| = 1;
$SIG{PIPE} = 'IGNORE';
our $patience = 60; # seconds
my $together = 6;
my @clients; # processes that a row has started
my $running = 0;

# The results that count as a refusal.
our $refused = 'refused|reset|closed|denied|403|no name|unreachable';
our $public = '198.51.100.10';

sub slurp { open(my $f, '<', $_[0]) or return ''; local $/; return scalar <$f>; }

# row ID, TITLE, EXPECTED, SUB tries one row. The sub returns the result.
sub row {
	my ($id, $title, $expected, $try) = @_;
	if ($running >= $together) { wait; $running--; }
	my $pid = fork // die "fork: $!";
	if ($pid) { $running++; return; }
	$SIG{ALRM} = sub { tell_row($id, $title, $expected, 'silence'); POSIX::_exit(0) };
	alarm $patience * 2;
	our $marker = $id;
	my $seen = eval { $try->() } // "error: $@";
	tell_row($id, $title, $expected, $seen);
	POSIX::_exit(0);
}

sub tell_row {
	my $line = join("\t", @_);
	$line =~ s/[\n\r]/ /g;
	kill KILL => @clients if @clients;
	print "$line\n";
}

# untried ID, TITLE, REASON names a row that cannot be tried.
sub untried { tell_row(shift, shift, '-', "not tried: @_"); }

sub finish { 1 while wait > 0; }

# word names an error of the kernel.
sub word {
	return 'refused' if $!{ECONNREFUSED};
	return 'reset' if $!{ECONNRESET} || $!{EPIPE};
	return 'unreachable' if $!{ENETUNREACH} || $!{EHOSTUNREACH} || $!{EADDRNOTAVAIL};
	return 'forbidden' if $!{EPERM} || $!{EACCES};
	return 'no such thing' if $!{EAFNOSUPPORT} || $!{EPROTONOSUPPORT} || $!{ESOCKTNOSUPPORT} || $!{ENOSYS} || $!{EPROTOTYPE} || $!{EINVAL} || $!{ENOENT} || $!{ENOPROTOOPT} || $!{ENOTTY};
	return 'silence' if $!{ETIMEDOUT} || $!{EAGAIN} || $!{EINPROGRESS};
	return "error: $!";
}

sub ready {
	my ($s, $write, $seconds) = @_;
	my $bits = '';
	vec($bits, fileno($s), 1) = 1;
	my ($r, $w) = $write ? (undef, $bits) : ($bits, undef);
	return select($r, $w, undef, $seconds // $patience) > 0;
}

# finished waits until a socket is connected, and returns an error's word.
sub finished {
	my ($s) = @_;
	return 'silence' unless ready($s, 1);
	$! = unpack 'i', getsockopt($s, SOL_SOCKET, SO_ERROR);
	return $! ? word() : undef;
}

# dial HOST, PORT returns a socket, or a word.
sub dial {
	my ($host, $port, $prepare) = @_;
	my $address = inet_aton($host) // return (undef, 'no name');
	socket(my $s, AF_INET, SOCK_STREAM, 0) or return (undef, word());
	if ($prepare) { my $problem = $prepare->($s); return (undef, $problem) if $problem; }
	fcntl($s, F_SETFL, O_NONBLOCK);
	if (!connect($s, pack_sockaddr_in($port, $address)) && !$!{EINPROGRESS}) { return (undef, word()); }
	my $problem = finished($s);
	return (undef, $problem) if $problem;
	return ($s, undef);
}

# put sends all of a text.
sub put {
	my ($s, $text) = @_;
	utf8::encode($text) if utf8::is_utf8($text);
	while (length $text) {
		return 0 unless ready($s, 1);
		my $n = syswrite($s, $text);
		if (!defined $n) { next if $!{EAGAIN}; return 0; }
		substr($text, 0, $n, '');
	}
	return 1;
}

# get reads until there are enough bytes, a pattern matches, or the end; (bytes, word if nothing was read).
sub get {
	my ($s, $enough) = @_;
	my ($all, $end) = ('', time + $patience);
	while (length($all) < 1 << 20) {
		last if ref $enough ? $all =~ $enough : length($all) >= $enough;
		return ($all, 'silence') if time > $end || !ready($s, 0, $end - time);
		my $n = sysread($s, my $part, 65536);
		if (!defined $n) { next if $!{EAGAIN}; return ($all, word()); }
		return ($all, 'closed') if $n == 0;
		$all .= $part;
	}
	return ($all, undef);
}

# raw HOST, PORT connects and wants to hear a greeting.
sub raw {
	my ($host, $port, $prepare) = @_;
	my ($s, $problem) = dial($host, $port, $prepare);
	return $problem if $problem;
	our $marker;
	put($s, "$marker\r\n");
	my ($said, $why) = get($s, 5);
	return length $said ? 'works' : $why // 'closed';
}

# http HOST, OPTIONS makes a request whose path names the row.
sub http {
	my ($host, %o) = @_;
	our $marker;
	my ($s, $problem) = $o{tls} ? secured($host, %o) : dial($o{at} // $host, $o{port} // 80, $o{prepare});
	return $problem if $problem;
	my $method = $o{method} // 'GET';
	my $target = $o{target} // "/try/$marker";
	my $head = $o{head} // "Host: $host\r\n";
	put($s, $o{text} // "$method $target HTTP/1.1\r\n${head}Connection: close\r\n\r\n");
	my ($said, $why) = get($s, $o{until} // qr/pong|^HTTP\/1\.[01] [2345].*?\r\n\r\n.*\n/s);
	return answer($said, $why);
}

# answer names what came back over HTTP.
sub answer {
	my ($said, $why) = @_;
	return $why // 'closed' if $said eq '';
	my @statuses = $said =~ /^HTTP\/1\.[01] ([2-5]\d\d)/mg;
	return 'works' if $said =~ /pong/ && !grep { $_ != 200 } @statuses;
	return $statuses[-1] // 'no answer of HTTP';
}

# trusted returns the file with the certificates that programs here trust.
sub trusted { return $ENV{SSL_CERT_FILE} // '/etc/ssl/certs/ca-certificates.crt'; }

# https HOST, OPTIONS makes a request inside TLS.
sub https { return http(@_, tls => 1); }

# secured HOST, OPTIONS returns a socket whose other end is a client of TLS, which trusts what programs here trust, or anybody (stranger).
sub secured {
	my ($host, %o) = @_;
	socketpair(my $near, my $far, AF_UNIX, SOCK_STREAM, 0) or return (undef, word());
	my $pid = fork // return (undef, word());
	if (!$pid) {
		open STDIN, '<&', $far;
		open STDOUT, '>&', $far;
		open STDERR, '>', '/dev/null';
		close $near;
		no warnings 'exec';
		exec 'openssl', 's_client', '-quiet', $o{stranger} ? () : ('-verify_return_error', '-CAfile', trusted(), '-verify_hostname', $host),
			'-servername', $o{sni} // $host, '-connect', "$host:443", $o{alpn} ? ('-alpn', $o{alpn}) : ();
		POSIX::_exit(127);
	}
	push @clients, $pid;
	close $far;
	fcntl($near, F_SETFL, O_NONBLOCK);
	return ($near, undef);
}

# http2 HOST, AUTHORITY, PATH, HEADERS makes a request of HTTP/2 inside TLS.
sub http2 {
	my ($host, $authority, $path, @headers) = @_;
	my ($s, $problem) = secured($host, alpn => 'h2');
	return $problem if $problem;
	my @fields = (':method' => 'GET', ':scheme' => 'https', ':path' => $path, ':authority' => $authority, @headers);
	my $block = join '', map { (@fields[2 * $_, 2 * $_ + 1])[0] && pack('C C/a* C/a*', 0, @fields[2 * $_, 2 * $_ + 1]) } 0 .. $#fields / 2;
	put($s, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" . pack('x3 C x5', 4) . substr(pack('N', length $block), 1) . pack('C C N', 1, 5, 1) . $block);
	my ($said, $why) = get($s, qr/pong|seen|does not lead|not this prison|": the request|\x00\x00\x04\x03\x00{4}\x01|\x00\x00.\x07\x00{5}/s); # or a frame that ends request 1, or the connection
	return $said =~ /pong|seen/ ? 'works' : $said =~ /does not lead|not this prison|": the request/ ? '403' : $why // 'reset';
}

# command WORDS... runs a program that may not be here, and reports whether it succeeded.
sub command {
	my ($name) = @_;
	return "not tried: there is no $name here" if system("command -v $name >/dev/null 2>&1");
	return system("@_ >/dev/null 2>&1") == 0 ? 'works' : 'failed';
}

# hello SERVER, OPTIONS is how a client of TLS 1.2 begins. Its protocol names the row.
sub hello {
	my (%o) = @_;
	our $marker;
	my $extensions = '';
	$extensions .= extension(0xfe0d, "\0" x 16) if $o{hidden};
	$extensions .= extension(21, "\0" x $o{padding}) if $o{padding};
	for my $name (@{$o{names}}) {
		utf8::encode($name) if utf8::is_utf8($name);
		my $entry = pack('C n/a*', 0, $name);
		$extensions .= extension(0, pack('n/a*', $entry));
	}
	$extensions .= extension(10, pack('n n n', 4, 29, 23)) . extension(11, pack('C C', 1, 0));
	$extensions .= extension(13, pack('n n n n', 6, 0x0403, 0x0804, 0x0401)) . extension(16, pack('n/a*', pack('C/a*', $marker)));
	my $body = pack('n', 0x0303) . join('', map { chr int rand 256 } 1 .. 32) . pack('C', 0) . pack('n n n', 4, 0xc02b, 0xc02f);
	$body .= pack('C C', 1, 0) . pack('n/a*', $extensions);
	my $message = pack('C', 1) . substr(pack('N', length $body), 1) . $body;
	my $size = $o{records} // 16000;
	my $all = '';
	while (length $message) { $all .= pack('C n n/a*', 22, 0x0301, substr($message, 0, $size, '')); }
	return $all;
}

sub extension { return pack('n n/a*', @_); }

# tls HOST, OPTIONS begins TLS and names the first record that comes back.
sub tls {
	my ($host, %o) = @_;
	$o{names} //= [$host];
	my ($s, $problem) = dial($o{at} // $host, $o{port} // 443, $o{prepare});
	return $problem if $problem;
	setsockopt($s, IPPROTO_TCP, TCP_NODELAY, 1);
	my $hello = $o{text} // hello(%o);
	if ($o{bytes}) { for my $byte (split //, $hello) { put($s, $byte) or last; } } else { put($s, $hello); }
	my ($said, $why) = get($s, 7);
	return $why // 'closed' if length $said < 7;
	my ($type, undef, undef, $level, $alert) = unpack 'C n n C C', $said;
	return 'works' if $type == 22;
	return $type == 21 ? $alert == 49 ? 'denied' : "alert $alert" : 'no TLS';
}

# question NAME, TYPE is a message of DNS.
sub question {
	my ($name, $type, %o) = @_;
	my $labels = join '', map { pack 'C/a*', $_ } split /\./, $name;
	return pack('n n n n n n', 4711, 0x0100, 1, 0, 0, $o{edns} ? 1 : 0) . $labels . pack('C n n', 0, $type, 1) . ($o{edns} ? pack('C n n N n', 0, 41, 1232, 0, 0) : '');
}

sub resolver {
	open my $f, '<', '/etc/resolv.conf' or return '127.0.0.1';
	while (<$f>) { return $1 if /^nameserver\s+(\d+\.\d+\.\d+\.\d+)/; }
	return '127.0.0.1';
}

# verdict names an answer of DNS.
sub verdict {
	my ($m) = @_;
	return 'no answer' if length $m < 12;
	my (undef, $flags, undef, $answers) = unpack 'n n n n', $m;
	my $code = $flags & 15;
	return $code == 3 ? 'no name' : "code $code" if $code;
	return $answers ? 'answer' : 'nodata';
}

# ask asks over UDP, again if there is no answer, as resolvers do.
sub ask {
	my ($message, %o) = @_;
	my $seen;
	for (1 .. 4) {
		$seen = datagram($o{at} // resolver(), $o{port} // 53, $message, seconds => $patience / 10, %o);
		return verdict($seen->{bytes}) if length $seen->{bytes};
		last if $seen->{why} ne 'silence';
	}
	return $seen->{why};
}

# datagram HOST, PORT, BYTES sends one, and waits for an answer.
sub datagram {
	my ($host, $port, $bytes, %o) = @_;
	my $address = inet_aton($host) // return {bytes => '', why => 'no name'};
	socket(my $s, AF_INET, SOCK_DGRAM, 0) or return {bytes => '', why => word()};
	setsockopt($s, SOL_SOCKET, SO_BROADCAST, 1) if $o{broadcast};
	connect($s, pack_sockaddr_in($port, $address)) or return {bytes => '', why => word()};
	utf8::encode($bytes) if utf8::is_utf8($bytes);
	defined send($s, $bytes, 0) or return {bytes => '', why => word()};
	return {bytes => '', why => 'silence'} unless ready($s, 0, $o{seconds} // 3);
	defined recv($s, my $got, 65535, 0) or return {bytes => '', why => word()};
	return {bytes => $got, why => 'closed'};
}

# proxy BYTES sends what a client sends to a proxy, to each place where one might be.
sub proxy {
	my ($bytes) = @_;
	my @seen;
	for my $place (['files.test', 80], ['10.0.2.2', 3128], ['10.0.2.2', 1080], ['127.0.0.1', 3128], ['127.0.0.1', 1080]) {
		my ($s, $problem) = dial(@$place);
		if ($problem) { push @seen, $problem; next; }
		put($s, $bytes);
		my ($said, $why) = get($s, qr/^HTTP\/1\.[01] \d\d\d|^\x05../s);
		return "a proxy at $place->[0]:$place->[1]" if $said =~ /^HTTP\/1\.[01] 2|^\x05\x00/;
		push @seen, $said =~ /^HTTP\/1\.[01] (\d+)/ ? $1 : $why // 'closed';
	}
	return join ' ', @seen;
}
our $none = '^(?!.*a proxy).*$';

sub relay { our $marker; my ($authority) = @_; return proxy("CONNECT $authority HTTP/1.1\r\nHost: $authority\r\nX-Row: $marker\r\n\r\n"); }
sub socks { my ($kind, $address) = @_; return proxy("\x05\x01\x00\x05\x01\x00" . chr($kind) . $address . pack('n', 443)); }
