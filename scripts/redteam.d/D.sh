# D: the prison.
# shellcheck shell=bash disable=SC2016,SC2154

# says TEXT PATTERN makes the agent print something, of which a line must match.
says() {
	attack "$1"
	if [ -n "$proving" ]; then
		expected 'without a prison the result differs'
		if grep -q -E -x -e "$2" "$work/agent.out"; then surprised "a plain process says so, too: $2"; else seen 'it is'; fi
		return
	fi
	expected "$2"
	if grep -q -E -x -e "$2" "$work/agent.out"; then seen "$(grep -E -x -e "$2" "$work/agent.out" | head -n 1)"; else surprised "it says: $(head -c 200 "$work/agent.out")"; fi
}

D1() {
	tries 'privileges: root, capabilities, gaining new ones, system calls'
	says 'sed -n "s/^\(NoNewPrivs\|Seccomp\):[[:space:]]*/\1 /p" /proc/self/status | paste -s -d " "' 'NoNewPrivs 1 Seccomp 2'
	[ -z "$proving" ] || return
	says 'echo "uid $(id -u) caps $(sed -n "s/^Cap...:[[:space:]]*//p" /proc/self/status | sort -u | paste -s -d " ")"' 'uid [1-9][0-9]* caps 0+'
	says 'unshare -Ur true 2>/dev/null && echo gained || echo refused' refused
}

setid() { find "$1" -perm /6000 2>/dev/null; }

D2() {
	tries 'a setuid program'
	attack 'cp /bin/sh x; chmod 6755 x 2>/dev/null || :; stat -c "mode %a" x'
	if [ -n "$proving" ]; then plainly : '[ -n "$(setid "$plain")" ]' && return; fi
	expected 'no set-id bit on the disk'
	if [ -n "$(inside 'find . -perm /6000' && grep . "$work/agent.out")" ]; then surprised "a setuid file: $(cat "$work/agent.out")"; else seen "$(grep mode "$work/agent.out" || echo 'the bits are refused')"; fi
}

D3() {
	tries "the engine's socket, the metadata service, the user's agents and other networks"
	says 'ls -d /var/run/docker.sock /run/docker.sock /run/user 2>/dev/null || :
		for at in 169.254.169.254 10.0.0.1 1.1.1.1; do
			timeout 3 bash -c "exec 3<>/dev/tcp/$at/80" 2>/dev/null && echo "reached $at" || :
		done; echo "interfaces $(sed 1,2d /proc/net/dev | cut -d: -f1 | tr -d " " | sort | paste -s -d " ")"; echo "agents ${SSH_AUTH_SOCK-none} ${DBUS_SESSION_BUS_ADDRESS-none}"' \
		'interfaces lo( tunl0| sit0| ip6tnl0| gre0| gretap0| erspan0| ip_vti0| ip6_vti0| ip6gre0)*'
	[ -z "$proving" ] || return
	if grep -q -E -e '^reached|docker|/run/user' "$work/agent.out"; then surprised "$(grep -E -e '^reached|docker|/run/user' "$work/agent.out" | head -n 1)"; fi
	grep -q -x 'agents none none' "$work/agent.out" || surprised 'an agent of the user can be reached'
}

D4() {
	tries 'a fork bomb'
	no_plain 'it would be one' && return
	fresh 'git config airlock.pids 64' || return
	attack 'perl -e "for (1..3000) { my \$p = fork; last if !defined \$p; if (!\$p) { sleep 99; exit } push @p, \$p } printf qq(forked %d\n), scalar @p; kill 9, @p" || :'
	# If resource limits replace a control group, some processes remain for a visit.
	expected 'at most about 64 processes, and the host responds'
	local n
	n=$(sed -n 's/^forked //p' "$work/agent.out")
	if [ "${n:-9999}" -lt 80 ]; then seen "$n forked"; else surprised "$n processes"; fi
	user_looks
	await 5000 inside true || surprised 'nobody can look in any more'
	attack work
	lands
}

# full checks that the watchdog has stopped the prison, and that all commits have landed.
full() {
	expected 'held: workspace-full; the prison is stopped'
	if await 15000 held_by workspace-full "${1-}" && [ "$(field state)" = broken ]; then seen "$(hold) (after $(since "$begun_at") ms)"; else surprised "not stopped: $(hold)"; fi
}

D5() {
	tries 'a full disk'
	no_plain 'nothing would stop it' && return
	fresh 'git config airlock.maxWorkspace 8m' || return
	attack_may_end 'work; head -c 30000000 /dev/urandom >fill 2>/dev/null & sleep 1; exit 0'
	full
	lands
}

D6() {
	tries 'a disk without free inodes'
	no_plain 'nothing would stop it' && return
	fresh small_disk || return
	[ -z "$why_not" ] || return
	attack_may_end 'work; i=0; while [ $i -lt 30000 ] && : >f$i; do i=$((i + 1)); done 2>/dev/null & sleep 3; exit 0'
	full 'more files'
}

# small_disk puts the repository onto a small file system: one that root mounts, or one that was given to the user as
# AIRLOCK_TEST_DISK.
small_disk() {
	local disk=$work/disk
	if [ -n "${AIRLOCK_TEST_DISK-}" ]; then
		disk=$AIRLOCK_TEST_DISK
		exec {disk_lock}<"$disk" && flock "$disk_lock" # until the stage is razed: there is one for all jobs
	elif ! mkdir -p "$disk" || ! is_root || ! mount -t tmpfs -o size=60m,nr_inodes=12k,mode=755 none "$disk" 2>"$said"; then
		untriable - 'only root can mount a small disk (AIRLOCK_TEST_DISK)'
		return 0
	fi
	mv "$outer" "$disk/r" && ln -s "$disk/r" "$outer" && cd "$disk/r" && outer=$disk/r
}

D7() {
	tries 'traces of the host: mounts, processes, names, files'
	no_plain 'there is nothing to hide' && return
	attack 'cat /proc/self/mountinfo /proc/1/cmdline /proc/[0-9]*/comm /proc/*/environ /proc/self/cgroup /etc/passwd /etc/hostname 2>/dev/null | tr "\0" "\n"; env; hostname 2>/dev/null || cat /proc/sys/kernel/hostname'
	expected 'nothing names this tool, user, host or path'
	local word line
	for word in airlock ursula host.example "$(id -un)@"; do
		line=$(grep -i -F -m 1 -e "$word" "$work/agent.out") && surprised "$word: $line"
	done
	# A host may be called "vm", with which many file names begin.
	line=$(grep -i -F -w -m 1 -e "$(hostname)" "$work/agent.out") && surprised "the host's name: $line"
	if grep -q -F -e "$outer" "$work/agent.out"; then
		if git airlock status --json | has mountinfo; then seen 'the path is in mountinfo, and status says so'; else surprised 'the path is in mountinfo, and nobody says so'; fi
	else
		seen 'none'
	fi
}

D8() {
	tries 'all promises of the prison, in its selftest'
	no_plain 'there is no prison' && return
	expected 'all are kept'
	if git airlock selftest >"$said" 2>&1; then seen "$(tail -n 1 "$said")"; else surprised "$(grep -m 1 broken "$said")"; fi
}

# victims makes host files that an attack wants the user's tools to change.
victims() {
	rm -rf "$work/victim"
	mkdir -p "$work/victim/folder"
	echo precious >"$work/victim/file"
	echo precious >"$work/victim/folder/file"
	chmod 640 "$work/victim/file"
	chmod 777 "$work/victim"
	unhurt=$(victims_are)
}
victims_are() { find "$work/victim" -printf '%p %u %m %s\n' | sort; find "$work/victim" -type f -exec cat {} +; }

D9() {
	tries 'links from the workspace to files of the host, during stop, start and clear'
	victims
	fresh : || return
	attack "for n in 1 2 3; do ln -sf '$work/victim/file' f\$n; ln -sfn '$work/victim/folder' d\$n; done; ln -sfn '$work/victim' .git/victim; ln -sf '$work/victim/file' .git/index.lock"
	plainly "chmod -R a+rwX \$plain/f1 \$plain/d1; chmod 777 \$plain/f1" '[ "$(victims_are)" != "$unhurt" ]' && return
	{ git airlock stop && git airlock start && git airlock clear --discard-pending; } >"$said" 2>&1 || surprised "$(tail -n 1 "$said")"
	staged=''
	expected 'they are unchanged'
	if [ "$(victims_are)" = "$unhurt" ]; then seen 'they are'; else surprised 'they are not'; fi
	[ ! -e "$outer/$workspace" ] || surprised 'the workspace is still there'
}

D10() {
	tries 'folders and links that are swapped while the workspace is removed'
	victims
	fresh : || return
	no_plain 'it is a race, which rm -r of a shell loses now and then' && return
	attack "mkdir d; for n in \$(seq 300); do mkdir -p d/\$n/x; echo >d/\$n/x/f; done
		setsid sh -c 'while :; do for n in 1 2 3 4 5 6 7 8 9; do mv d/\$n d/away\$n; ln -s $work/victim d/\$n; rm -f d/\$n; mv d/away\$n d/\$n; done; done' >/dev/null 2>&1 </dev/null &"
	git airlock clear --discard-pending >"$said" 2>&1 || surprised "clear: $(tail -n 1 "$said")"
	staged=''
	expected 'the workspace is removed, and nothing else'
	if [ "$(victims_are)" = "$unhurt" ]; then seen 'nothing else went'; else surprised 'something of the host changed'; fi
	[ ! -e "$outer/$workspace" ] || surprised 'the workspace is still there'
}

D11() {
	tries 'folders without permissions, 300 levels, names of 255 bytes, 20,000 files'
	no_plain 'root could delete them' && return
	fresh : || return
	attack 'mkdir -m 700 closed; echo >closed/x; chmod 000 closed; mkdir sealed; echo >sealed/x; chmod 555 sealed; perl -e "\$n = q(7) x 255; for (1..300) { mkdir \$n or die; chdir \$n or die }"
		mkdir many; perl -e "for (1..20000) { open my \$f, q(>), qq(many/\$_) }"'
	git airlock clear --discard-pending >"$said" 2>&1 || surprised "clear: $(tail -n 1 "$said")"
	staged=''
	expected 'clear removes them'
	if [ -e "$outer/$workspace" ]; then surprised 'the workspace is still there'; else seen 'it does'; fi
}

D12() {
	tries 'files of the user'
	attack 'echo x >x'
	plainly 'stat -c %u $plain/x' '[ "$(cat "$said")" = "$(id -u)" ]' && return
	expected "they belong to another user, and are closed to all others"
	if [ "$(stat -c '%u %a' "$outer/$workspace")" = "$uid 700" ] && [ "$uid" != "$(id -u)" ]; then seen "uid $uid, mode 700"; else surprised "$(stat -c '%u %a' "$outer/$workspace")"; fi
}

processes() { ps -o pid= -U "$uid" 2>/dev/null || :; }

D13() {
	tries 'processes that survive: new sessions, ignored signals'
	no_plain 'they would survive' && return
	fresh : || return
	attack 'for i in 1 2 3; do setsid sh -c "trap \"\" HUP TERM INT; while :; do sleep 1; done" >/dev/null 2>&1 </dev/null & done'
	[ -n "$(processes)" ] || surprised 'there are none'
	git airlock stop >"$said" 2>&1 || surprised "stop: $(tail -n 1 "$said")"
	expected 'none runs after a stop'
	if [ -z "$(processes)" ]; then seen 'none is'; else surprised "left: $(processes | tr '\n' ' ')"; fi
}

D14() {
	tries 'an agent that kills all processes that it can, and commits meanwhile'
	no_plain 'there is no exporter' && return
	fresh : || return
	attack_may_end 'kill -9 -1; sleep 1'
	await 10000 inside true || { git airlock start >"$said" 2>&1 && seen 'it had to be started again'; }
	attack 'perl -e "for (1..300) { for \$p (map { m{(\d+)} } glob q(/proc/[0-9]*)) { kill 9, \$p if \$p > 1 && getpgrp(\$p) != getpgrp(0) } }" &
		until (set -e; work); do rm -f .git/*.lock .git/refs/heads/*.lock; sleep 0.1; done; wait'
	lands
}

D15() {
	tries 'immutable files, file capabilities, attributes that only root may set'
	if [ -n "$proving" ] && ! is_root; then no_plain 'an ordinary user may not, either' && return; fi
	attack 'echo x >x; if chattr +i x 2>/dev/null; then chattr -i x; echo immutable; fi
		perl -e "my (\$f, \$k, \$v) = (q(x), q(security.capability), pack(q(VVVVV), 0x2000001, 32, 0, 0, 0)); print qq(capable\n) if syscall(188, \$f, \$k, \$v, 20, 0) == 0"'
	plainly : 'grep -q -x immutable "$work/agent.out"' && return
	expected 'all refused'
	if grep -q . "$work/agent.out"; then surprised "$(cat "$work/agent.out")"; else seen 'they are'; fi
}

D16() {
	tries "input injected into the user's terminal"
	says 'perl -e "my \$x = q(x); ioctl(STDIN, 0x5412, \$x); print \$! + 0, qq(\n)"' '1'
}

D17() {
	tries 'output of a run to a file of the user, and to /dev/null'
	no_plain 'no prison takes files over' && return
	fresh : || return
	(umask 027 && git airlock run -- sh -c 'echo said; chmod 777 /dev/stdout /proc/self/fd/1 2>/dev/null; chown 0 /proc/self/fd/1 2>/dev/null; exit 0' >"$work/log" 2>"$said" </dev/null) || surprised "run: $(tail -n 1 "$said")"
	expected "they still belong to the user"
	if [ "$(stat -c '%u %a %F' "$work/log")" = "$(id -u) 640 regular file" ] && [ "$(stat -c '%F %t:%T' /dev/null)" = 'character special file 1:3' ] && [ "$(cat "$work/log")" = said ]; then
		seen 'they do'
	else
		surprised "$(stat -c '%u %a %F' "$work/log" /dev/null | tr '\n' ' ')"
	fi
	staged=1
}

D18() {
	tries 'an image that is not on this machine, and could come from anywhere'
	no_plain 'there is no image' && return
	if [ "$backend" != docker ]; then untriable - 'images are for docker' && return; fi
	raze
	fresh_stage=1
	outer_repository
	expected 'refused, and nothing is fetched'
	timeout "$hang" git airlock start --backend docker --image no-such-image-of-the-red-team >"$said" 2>&1
	case $? in 0 | 124) surprised "$(tail -n 1 "$said")" ;; *) seen "$(head -n 1 "$said")" ;; esac
}

# flood makes the agent put as many descriptors in flight over sockets as it may, and keep them there.
flood='ulimit -n $(ulimit -Hn); perl -MSocket -e "
	use strict; my (\$r, \$w, @keep); socketpair(\$r, \$w, AF_UNIX, SOCK_STREAM, 0) or die; my \$n = 0;
	my \$fds = pack(q(l) . 250, (fileno STDIN) x 250); my \$control = pack(q(QllA*), 16 + 1000, SOL_SOCKET, 1, \$fds); my \$byte = q(x);
	my \$vector = pack(q(PQ), \$byte, 1); my \$message = pack(q(QQPQPQQ), 0, 0, \$vector, 1, \$control, 1016, 0);
	for (my \$full = 0; \$full < 2;) {
		if (syscall(46, fileno \$w, \$message, 0x40) == 1) { \$n += 250; \$full = 0; next }
		push @keep, \$r, \$w; \$full++; undef \$r; undef \$w; socketpair(\$r, \$w, AF_UNIX, SOCK_STREAM, 0) or last;
	}
	\$| = 1; print qq(flight \$n \$!\n); sleep 99"'

D20() {
	tries 'as many descriptors in flight as possible'
	no_plain 'nothing is passed there' && return
	fresh : || return
	[ "$(uname -m)" = x86_64 ] || { untriable - 'the call has another number here' && return; }
	attack "work; ( $flood ) >/tmp/flight 2>&1 </dev/null & for i in \$(seq 200); do grep -q flight /tmp/flight && break; sleep 0.3; done; cat /tmp/flight"
	grep -q '^flight [0-9]' "$work/agent.out" || surprised "no flood: $(head -c 200 "$work/agent.out")"
	lands
	expected 'a visit works, or names the reason'
	if git airlock visit -- true >"$said" 2>&1; then seen "let in ($(grep flight "$work/agent.out"))"; elif has 'in flight' <"$said" && has 'git airlock stop' <"$said"; then seen "$(head -n 1 "$said")"; else surprised "$(head -n 1 "$said")"; fi
	{ git airlock stop && git airlock start && git airlock visit -- true; } >"$said" 2>&1 || surprised "after a stop: $(tail -n 1 "$said")"
}

D21() {
	tries 'a program that takes the addresses of another one, by which the recorder of programs distinguishes the two'
	[ "$(uname -m)" = x86_64 ] || { untriable - 'the call has another number here' && return; }
	says 'perl -e "my \$size = pack(q(L), 0); print syscall(157, 35, 15, \$size, 0, 0) == 0 ? qq(taken\n) : qq(refused: \$!\n)"' 'refused: Operation not permitted'
}
