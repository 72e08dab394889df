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
untried T15 => 'another Host inside TLS', 'cannot be seen: a known limit';
