# J: walls of the prison that a look from outside got past.
# shellcheck shell=bash disable=SC2016,SC2154

# oracle makes a network beside this one, with the addresses that are given, and listens there. Nothing leaves the machine.
oracle() {
	(
		flock 9
		ip netns add "rt$$" && ip link add "rt$$" type veth peer name world netns "rt$$" || exit 1
		ip addr add 198.51.100.9/29 dev "rt$$" && ip link set "rt$$" up
		ip -n "rt$$" addr add 198.51.100.10/29 dev world && ip -n "rt$$" link set lo up && ip -n "rt$$" link set world up
		ip -n "rt$$" route add default via 198.51.100.9
		for a; do ip -n "rt$$" addr add "$a/32" dev lo && ip route add "$a/32" via 198.51.100.10 || exit 1; done
		ip netns exec "rt$$" perl -MIO::Socket::INET -e '
			my $l = IO::Socket::INET->new(Listen => 50, LocalPort => 4180, ReuseAddr => 1) or die;
			while (my $c = $l->accept) { close $c }' &
		echo $! >"$work/oracle.pid"
	) 9>/run/prisontest.lock
}
no_oracle() {
	kill "$(cat "$work/oracle.pid")" 2>/dev/null
	ip link del "rt$$" 2>/dev/null
	ip netns del "rt$$" 2>/dev/null
	rm -f "$work/oracle.pid"
}

J1() {
	tries 'an open network: metadata and private addresses, by routes, by a socket bound to the interface, without routes'
	no_plain 'a plain process reaches all of them' && return
	if [ "$(id -u)" != 0 ] || ! have ip || ! perl -e 1; then untriable network 'only root can make a network beside this one' && return; fi
	fresh 'git config airlock.network open' || return
	expected 'a public address is reached, and no other'
	if oracle 169.254.169.254 100.100.100.200 168.63.129.16 192.0.0.192 10.77.1.1 172.31.77.1 192.168.77.1; then
		await 5000 timeout 10 bash -c 'exec 3<>/dev/tcp/198.51.100.10/4180' 2>/dev/null
		attack 'perl -MSocket -e "
			for my \$at (qw(198.51.100.10 169.254.169.254 100.100.100.200 168.63.129.16 192.0.0.192 10.77.1.1 172.31.77.1 192.168.77.1)) {
				for my \$way (qw(routes bound direct)) {
					socket(my \$s, PF_INET, SOCK_STREAM, 0) or die;
					setsockopt(\$s, SOL_SOCKET, 25, qq(eth0\0)) if \$way eq qq(bound);
					setsockopt(\$s, SOL_SOCKET, 5, 1) if \$way eq qq(direct);
					setsockopt(\$s, SOL_SOCKET, 21, pack(q(qq), 0, 400000));
					print qq(reached \$at \$way\n) if connect(\$s, sockaddr_in(4180, inet_aton(\$at)));
				}
			}"'
		if [ "$(grep -c '^reached' "$work/agent.out")" = 2 ] && ! grep '^reached' "$work/agent.out" | has -v ' 198.51.100.10 '; then
			seen 'that is so'
		else
			surprised "$(grep '^reached' "$work/agent.out" | paste -s -d ',')"
		fi
	else
		surprised 'there is no oracle'
	fi
	no_oracle
}

J2() {
	tries 'memory in socket buffers, in a prison of 256 MiB'
	fresh 'git config airlock.memory 256m' || return
	attack 'perl -MSocket -MFcntl -e "
		socket(my \$l, PF_INET, SOCK_STREAM, 0) or die; bind(\$l, sockaddr_in(0, INADDR_LOOPBACK)) or die; listen(\$l, 500);
		my (\$sum, @all) = 0;
		for (1..200) {
			socket(my \$c, PF_INET, SOCK_STREAM, 0) or last; connect(\$c, getsockname(\$l)) or last; accept(my \$s, \$l) or last;
			push @all, \$c, \$s; fcntl(\$c, F_SETFL, O_NONBLOCK);
			for (1..64) { my \$n = syswrite(\$c, q(x) x 65536); last unless \$n; \$sum += \$n }
		}
		print qq(queued ), int(\$sum / 1048576), qq(\n)"'
	local queued
	queued=$(sed -n 's/^queued //p' "$work/agent.out")
	if [ -n "$proving" ]; then
		expected 'without a prison they hold more'
		if [ "${queued:-0}" -gt 256 ]; then seen "$queued MiB"; else surprised "${queued:-no} MiB"; fi
		return
	fi
	expected 'less than 256 MiB, or status says that it is not counted'
	if [ "${queued:-9999}" -lt 256 ]; then
		seen "$queued MiB"
	elif git airlock status | has -i -E 'memory.*(sockets|each process)'; then
		seen "$queued MiB, and status says that they are not counted"
	else
		surprised "${queued:-no} MiB"
	fi
}

J3() {
	tries 'programs of the inner configuration, when uncommitted changes are counted'
	attack 'git config filter.x.clean "$fire head -c 1000000000 /dev/zero | tail -c 900000000; sleep 100"; git config filter.x.required true; git config filter.y.process "$fire sleep 100"
		printf "a filter=x\nb filter=y\n" >.gitattributes; echo 1 >a; echo 2 >b; git update-index --add --cacheinfo "100644,$(blob old),a" --cacheinfo "100644,$(blob old),b"; echo changed >a; echo changed >b'
	plainly 'git -C $plain status --porcelain' && return
	expected 'three paths are counted at once'
	local from
	from=$(now)
	if [ "$(git airlock status --json | sed -n 's/.*"uncommitted": *\([0-9]*\).*/\1/p' | head -n 1)" != 3 ]; then surprised "$(git airlock status 2>&1 | tail -n 2)"; fi
	if [ "$(since "$from")" -lt $((3000 * $(slowness))) ]; then seen "$(since "$from") ms"; else surprised "$(since "$from") ms"; fi
}

J4() {
	tries "system calls and files: huge pages, a line discipline, the kernel's boot_id"
	attack 'cat /proc/sys/kernel/random/boot_id | sed "s/^/boot /"
		perl -e "\$! = 0; my \$d = 3; print qq(discipline ), ioctl(STDIN, 0x5423, pack(q(i), \$d)) ? q(set) : \$!{EPERM} ? q(refused) : \$! + 0, qq(\n);
			my \$r = syscall(9, 0, 2 << 20, 1, 0x40022, -1, 0); print qq(huge ), \$r == -1 && \$!{EPERM} ? q(refused) : \$! + 0, qq(\n)"' || :
	if [ -n "$proving" ]; then
		expected 'plain processes may use them'
		if has '^boot ........-' <"$work/agent.out" && ! has '^huge refused' <"$work/agent.out"; then seen 'they may'; else surprised "$(head -c 200 "$work/agent.out")"; fi
		return
	fi
	expected 'all refused'
	if has '^boot .' <"$work/agent.out" || [ "$(grep -c refused "$work/agent.out")" != 2 ]; then surprised "$(head -c 200 "$work/agent.out")"; else seen 'they are'; fi
}

J5() {
	tries 'terminal modes that a visit leaves behind'
	if ! have script; then untriable - 'there is no script(1)' && return; fi
	local program='printf "\033[?1049h\033[?1000h\033[?2004h\033[?25l"'
	if [ -n "$proving" ]; then
		plainly "script -qec '$program' /dev/stdout" '! has -F -e "[?1000l" <"$said"'
		return
	fi
	expected 'each is restored'
	script -qec "git airlock visit -- sh -c '$program'" "$work/shown" >/dev/null 2>&1 </dev/null
	local mode
	for mode in 1049l 1000l 2004l 25h; do
		has -F -e "[?$mode" <"$work/shown" || surprised "not ?$mode"
	done
	[ -n "$surprise" ] || seen 'they are'
	rm -f "$work/shown"
}

J6() {
	tries 'a tool in a folder with a mount point'
	no_plain 'it has no tools' && return
	if [ "$backend" != native ] || [ "$(id -u)" != 0 ]; then untriable - 'only root mounts, and only native prisons have tools' && return; fi
	mkdir -p "$work/given/mounted" && printf '#!/bin/sh\necho here\n' >"$work/given/tool" && chmod 755 "$work/given" "$work/given/tool"
	mount -t tmpfs none "$work/given/mounted"
	fresh "git config airlock.tool t=$work/given/tool" || { umount "$work/given/mounted" && return; }
	attack '/tools/t'
	umount "$work/given/mounted"
	expected 'it runs inside'
	if has -x here <"$work/agent.out"; then seen 'it does'; else surprised "$(tail -n 1 "$work/agent.err")"; fi
}

J7() {
	tries 'memory in netlink sockets, in a prison of 256 MiB'
	fresh 'git config airlock.memory 256m' || return
	# Each request is wrong, and the answer, which nobody reads, repeats it.
	attack_may_end 'perl -e "\$| = 1;
		for (1..4) { next if fork; my \$r = pack(q(LSSLL), 30000, 20, 5, 1, 0) . q(x) x 29984; my (\$n, @all) = 0;
			for (1..900) { socket(my \$s, 16, 3, 0) or last; push @all, \$s; fcntl(\$s, 4, 2048);
				for (1..20) { send(\$s, \$r, 0, pack(q(SSLL), 16, 0, 0, 0)) or last; \$n++ } }
			print qq(queued ), int(\$n * 30000 / 1048576), qq(\n); sleep 20; exit }
		1 while wait > 0"'
	local queued
	queued=$(awk '/^queued /{ n += $2 } END { print n + 0 }' "$work/agent.out")
	if [ -n "$proving" ]; then
		expected 'without a prison they hold more'
		if [ "$queued" -gt 256 ]; then seen "$queued MiB"; else surprised "$queued MiB"; fi
		return
	fi
	expected 'the prison ends, or status says that it is not counted'
	if git airlock status | has -i -F 'netlink sockets'; then
		seen "$queued MiB, and status says that they are not counted"
	elif await 5000 broken; then
		seen 'it has ended'
		git airlock start >"$said" 2>&1 || surprised 'it does not start again'
	else
		surprised "$queued MiB, and it goes on"
	fi
}
broken() { [ "$(field state)" = broken ]; }

J8() {
	tries 'limits, priority and signals for the first process of the prison'
	[ "$(uname -m)" = x86_64 ] || { untriable - 'the calls have other numbers here' && return; }
	# As root the first process of the machine would be harmed, so the proof has one of its own.
	local harmed=1 refused=6
	[ -z "$proving" ] || harmed='$first'
	attack 'sleep 30 >/dev/null 2>&1 & first=$!
		perl -e "my \$first = 0 + shift; my \$limit = pack(q(QQ), 0, 0); my \$none = pack(q(L), 0); my \$refused = 0; local \$SIG{__WARN__} = sub {};
			for ([302, \$first, 0, \$limit, 0], [302, \$first, 7, \$limit, 0], [144, \$first, 5, \$none], [141, 0, \$first, 19], [251, 1, \$first, 24576], [62, \$first, 19])
				{ \$refused++ if syscall(\$_->[0], @{\$_}[1 .. \$#\$_]) < 0 }
			print qq(refused \$refused\n)" '"$harmed"'; kill -CONT $first; kill $first'
	if [ -n "$proving" ]; then
		expected 'with the same uid they are allowed'
		if grep -q -x 'refused 0' "$work/agent.out"; then seen 'they are'; else surprised "$(cat "$work/agent.out")"; fi
		return
	fi
	expected 'all refused, and it answers'
	if grep -q -x "refused $refused" "$work/agent.out"; then seen "$(cat "$work/agent.out") of $refused"; else surprised "$(cat "$work/agent.out")"; fi
	user_looks
	attack work
	lands
}
