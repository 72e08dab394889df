# N: the rows about the life of a network: its process is killed, rules change, a second airlock is beside it, a disk is full. The servers of
# the world go on for ever, so that a download ends only if the network ends it.
# shellcheck shell=bash disable=SC2016,SC2034,SC2154,SC2317

# holds ID TITLE EXPECTED FUNCTION prints the row of a function, which prints what is wrong, and nothing else.
holds() {
	local case=$id wrong
	id=$1 title=$2 want=$3 sight='' surprise='' why_not='' need=-
	echo "$id" >>"$work/ids"
	wrong=$("$4" 2>&1)
	case $wrong in
	'') seen 'as expected' ;;
	'not tried: '*) why_not=${wrong#not tried: } ;;
	*) surprised "$wrong" ;;
	esac
	row
	id=$case title='' want='' sight='' surprise='' why_not=''
}

# live tries all rows of the life of a network, from the repository of the airlock.
live() {
	holds S01 'the process of the network is killed' 'nothing leaves, and it is healed' killed
	holds S07 'the interface after that' 'as before' interface_stays
	holds S08 'the address of a name after that' 'as before' names_stay
	holds S02 'a denial while a download runs' 'the download ends' denied_download
	holds S09 '4,000 refused connections' 'few records, bounded memory' flood
	holds H20 '3,000 connections that are idle' 'at most 512, and it recovers' idle_connections
	holds C33 'the value of a key in the files, the status and the environments of this machine' none value_stays_out
	holds T15 'another Host inside TLS that is only copied' 'cannot be seen, and net says so' opaque_host
	holds C35 'ports of this machine that the network listens at' none nothing_listens
	holds C44 'a commit with a placeholder' 'lands, and is flagged' placeholder_lands
	holds N28 'a rule about names that many tenants share' 'allowed, with a warning' tenants
	holds N29 'a rule about every name, or a public suffix' 'exit status 2' everything
	holds C45 'a credential in a committed file' 'exit status 2' committed_credential
	holds S10 'a clock that is set back' 'numbers and hashes go on' clock
	neighbour
	holds S05 'a disk without room for records' 'no new connection' full_disk
}

network_state() { cat "$outer"/.git/airlock/*/prison/network-state.json; }
network_pid() { network_state | sed -n 's/.*"pid":\([0-9]*\),.*/\1/p'; }
starts() { network_state | sed -n 's/.*"starts":\([0-9]*\),.*/\1/p'; }
works() { [ "$(attempt "print http('${1:-files.test}')")" = works ]; }
mebibytes() { sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$(network_pid)/status" | awk '{ print int($1 / 1024) }'; }
# small_process checks the memory that the network's process has used.
small_process() { [ "$(mebibytes)" -le "$1" ] || echo "the network's process took $(mebibytes) MiB"; }

look_inside() { attempt 'print map { slurp($_) } "/proc/net/dev_mcast", "/proc/net/route"; print inet_ntoa(inet_aton("www.a.test"))'; }

killed() {
	local before pid
	before=$(starts)
	look_inside >"$work/inside.before"
	pid=$(network_pid)
	attempt 'our $marker = "S01"; $patience = 5; for (1 .. 100) { http("s01.evil.test"); raw("198.51.100.10", 9000); sleep 0.01 }' &
	kill -9 "$pid"
	restarted() { [ "$(starts)" -gt "$before" ]; }
	await 30000 restarted || echo 'it was not started again'
	await 30000 works || echo 'nothing works after that'
	wait $!
	! heard_of s01 || echo 'a server heard it'
}

interface_stays() { look_inside | head -n -1 | cmp - <(head -n -1 "$work/inside.before"); }
names_stay() { look_inside | tail -n 1 | cmp - <(tail -n 1 "$work/inside.before"); }

# download NAME runs a download that does not end, until a server hears of it. It is process $download.
download() {
	attempt "our \$marker = 'slow'; http('$1', target => '/slow', until => qr/(?!)/) for 1 .. 1; print 'ended'" >"$work/slow" &
	download=$!
	begun() { [ "$(grep -c -x -i -e "$1 GET /slow" "$world/requests.log")" -ge "$2" ]; }
	await 30000 begun "$1" "${2:-1}" || { echo 'the download does not begin' && return 1; }
}
ended() { ! kill -0 "$download" 2>/dev/null; }

denied_download() {
	download files.test || return
	git airlock net deny files.test >"$said" 2>&1 || echo "deny: $(cat "$said")"
	await 20000 ended || { echo 'the download goes on' && kill "$download"; }
	! works || echo 'a denied name is reached'
	git airlock net allow files.test >"$said" 2>&1
	works || echo 'what is allowed again is not reached'
}

ledger_size() { cat "$outer"/.git/airlock/*/prison/egress*.jsonl | wc -c; }

flood() {
	local before
	before=$(ledger_size)
	attempt 'our $marker = "S09"; $patience = 20; my @all = map { my $n = $_; my $pid = fork // die; if (!$pid) { for (1 .. 1000) { raw($_ % 2 ? "10.9.9.$n" : "s09-$_.evil.test", 9000) } POSIX::_exit(0) } $pid } 1 .. 4; waitpid $_, 0 for @all' >/dev/null
	[ $(($(ledger_size) - before)) -le $((2 << 20)) ] || echo "$(($(ledger_size) - before)) bytes of records"
	small_process 128
	works || echo 'nothing works after that'
}

# idle_connections makes connections in 12 processes, which together count those that are still open: the network ends silent ones after
# 10 seconds, and a slow machine takes longer for all of them.
idle_connections() {
	local made open
	read -r made open < <(attempt '$patience = 3; pipe(my $r, my $w); pipe(my $wait, my $hold);
		for (1 .. 12) {
			next if fork // die;
			close $hold;
			my @open = grep { $_ } map { (dial("files.test", 80))[0] } 1 .. 250;
			syswrite $w, scalar(@open) . "\n";
			<$wait>;
			my $n = grep { my $bits = ""; vec($bits, fileno $_, 1) = 1; !select($bits, undef, undef, 0) } @open;
			syswrite $w, "$n\n";
			POSIX::_exit(0);
		}
		close $w; close $wait;
		my ($made, $open) = (0, 0);
		$made += <$r> for 1 .. 12;
		close $hold;
		$open += <$r> for 1 .. 12;
		1 while wait > 0;
		print "$made $open\n"')
	[ "${made:-0}" -ge 200 ] || echo "only ${made:-0} connections"
	[ "${open:-9999}" -le 512 ] || echo "$open connections at a time"
	small_process 160
	await 30000 works || echo 'nothing works after that'
}

value_stays_out() {
	! grep -rqs -F -e "$real_key" "$outer/.git" || echo "in $(grep -rls -F -e "$real_key" "$outer/.git" | head -n 1)"
	! git airlock status --json | has -F -e "$real_key" || echo 'in status'
	! git airlock net --json | has -F -e "$real_key" || echo 'in net'
	! grep -qs -F -e "$real_key" /proc/[0-9]*/cmdline || echo 'in a command line'
	! grep -qs -F -e "$real_key" "/proc/$(network_pid)/environ" || echo "in the environment of the network's process"
	! git airlock net log --json | has -F -e "$real_key" || echo 'in the record'
	value_in_memory
}

# value_in_memory looks for the value in the memory of each process of git-airlock, and of all prisons: only the network's process and its
# holder, which started it, may have it. A user can only read the processes with the same user id.
value_in_memory() {
	local pid holder known=''
	pid=$(network_pid)
	holder=$(sed -n 's/^PPid:[^0-9]*//p' "/proc/$pid/status")
	while read -r process name; do
		case $process in "$pid" | "$holder") known="$known $process" ;; *) echo "in the memory of process $process ($name)" ;; esac
	done < <(VALUE=$real_key perl -e '
		my $own = readlink "/proc/self/ns/pid";
		for my $folder (glob "/proc/[0-9]*") {
			my ($program, $space) = map { readlink("$folder/$_") // "" } "exe", "ns/pid";
			next unless $program =~ m{/git-airlock[^/]*$} || $space ne $own;
			open(my $maps, "<", "$folder/maps") && open(my $memory, "<:raw", "$folder/mem") or next;
			while (<$maps>) {
				my ($from, $to) = /^([0-9a-f]+)-([0-9a-f]+) rw/ or next;
				my ($at, $size) = (hex $from, hex($to) - hex $from);
				next if $size > 1 << 28 || !seek $memory, $at, 0;
				sysseek $memory, $at, 0;
				sysread $memory, my $part, $size;
				next unless defined $part && index($part, $ENV{VALUE}) >= 0;
				print $folder =~ s{/proc/}{}r, " $program\n";
				last;
			}
		}')
	! is_root || [ "${known#* }" != "$known" ] || echo 'the search does not find it in the network'"'"'s process either'
}

nothing_listens() {
	have ss || { echo 'not tried: there is no ss' && return; }
	"$host" ss -ltnupH | grep -v -E -e '"internet"' -e '^udp +UNCONN.*("internet")' | grep git-airlock
}

# opaque_host tries the known limit of a rule about a name alone, which the user must be able to see.
opaque_host() {
	[ "$(attempt 'print https("files.test", stranger => 1, head => "Host: t15.test\r\n")')" = works ] || echo 'it does not work'
	await 10000 says_opaque || echo 'net does not say so'
}
says_opaque() { git airlock net --json | has -P -z -e '"rule": "files\.test"[^}]*"opaque": true'; }

placeholder_lands() {
	attempt 'open(my $f, ">", "settings") or die; print $f "key = $ENV{KEY}\n"; close $f; system("git add settings && git commit -qm C44") == 0 or die' || echo 'no commit'
	landed_flagged() { git log -1 --format=%N --notes=airlock main 2>/dev/null | grep -q '^Airlock-Policy: .*flagged.*phantom'; }
	await 20000 landed_flagged || echo "$(hold) $(git log -1 --format=%s%n%N --notes=airlock main | paste -s -d ' ')"
}

tenants() {
	git airlock net allow '*.github.io' >"$said" 2>&1 || echo "refused: $(cat "$said")"
	has -e 'many tenants' "$said" || echo "no warning: $(cat "$said")"
}

everything() {
	local rule
	for rule in '*' '*.com' '**.co.uk' '**'; do
		git airlock net allow "$rule" >"$said" 2>&1
		[ $? = 2 ] || echo "$rule: $(cat "$said")"
	done
}

committed_credential() {
	local other=$work/committed
	git init -q "$other" && cd "$other" || return
	printf '[airlock "credential.openai"]\n\tsource = command:evil\n' >team.config
	git add team.config && git commit -qm config && git config include.path ../team.config
	git airlock start --backend "$backend" ${image:+--image "$image"} --network allowlist >"$said" 2>&1
	[ $? = 2 ] || tail -n 2 "$said"
	cd "$outer" && rm -rf "$other"
}

clock() { echo 'not tried: a test of the ledger sets the clock'; }

# neighbour tries the rows that need a second airlock, whose repository is $second.
neighbour() {
	local first=$outer
	second=$work/second
	if ! begin_second; then
		for row_id in S03 S04 C34; do holds $row_id 'a second airlock' 'it starts' no_second; done
	else
		holds S04 'two airlocks' 'rules, addresses and records of their own' independent
		holds C34 'a placeholder of another airlock' 403 foreign_placeholder
		holds S03 'a lockdown' 'ends the downloads of this airlock alone' lockdown
		cd "$second" && git airlock clear --discard-pending >"$said" 2>&1
	fi
	cd "$first" && rm -rf "$second"
}
no_second() { echo "start: $(tail -n 2 "$work/second.said")"; }

begin_second() {
	git init -q "$second" && cd "$second" && git commit -q --allow-empty -m base && credentials && start_second
}
start_second() {
	REAL_KEY=$real_key "$host" git airlock start --backend "$backend" ${image:+--image "$image"} ${runtime:+--runtime "$runtime"} \
		--network allowlist --allow api.test --allow s04.b.test >"$work/second.said" 2>&1
}

independent() {
	local b
	b=$(attempt 'print join " ", http("files.test"), http("api.test"), http("s04.b.test")')
	[ "$b" = '403 works works' ] || echo "the second: $b"
	await 10000 has -e s04 .git/airlock/*/prison/egress*.jsonl || echo 'the second has no record of it' # it is written when the exchange has ended
	cd "$outer" || return
	! has -e s04 .git/airlock/*/prison/egress*.jsonl || echo 'the first has a record of it'
	works || echo 'the first does not work'
}

foreign_placeholder() {
	local key
	cd "$second" && key=$(attempt 'print $ENV{KEY}') && cd "$outer" || return
	[ -n "$key" ] || echo 'no placeholder'
	set -- "$(attempt "print https('key.test', target => '/key', head => \"Host: key.test\r\nAuthorization: Bearer $key\r\n\")")"
	[ "$1" = 403 ] || echo "$1"
	[ "$key" != "$(attempt 'print $ENV{KEY}')" ] || echo 'they are the same'
}

lockdown() {
	local second_download
	cd "$second" && download api.test || return
	second_download=$download
	cd "$outer" && download files.test 2 || return
	git airlock net lockdown >"$said" 2>&1 || echo "lockdown: $(cat "$said")"
	await 20000 ended || { echo 'the download goes on' && kill "$download"; }
	! works || echo 'something is reached'
	kill -0 "$second_download" || echo "the other airlock's download has ended"
	kill "$second_download"
	wait "$second_download" 2>/dev/null
	cd "$second" && { works api.test || echo 'the other airlock reaches nothing'; }
	cd "$outer" && git airlock net unlock >"$said" 2>&1
	works || echo 'nothing works after that'
}

full_disk() {
	local disk=${AIRLOCK_TEST_DISK-}
	if is_root; then
		disk=$work/disk
		mkdir "$disk" && mount -t tmpfs -o size=60m,mode=755 none "$disk" || return
	elif [ -z "$disk" ]; then
		echo 'not tried: only root can mount a small disk (AIRLOCK_TEST_DISK)' && return
	fi
	second=$disk/r
	if begin_second; then
		works api.test || echo 'nothing works'
		fill() { cat /dev/zero >"$disk/zeros" 2>/dev/null; attempt 'http("full.evil.test")' >/dev/null; ! works api.test; }
		await 20000 fill || echo 'connections are made without records'
		git airlock status >"$said" 2>&1
		has -i -E -e 'space|disk|full' "$said" || echo "status does not say so: $(cat "$said")"
		rm "$disk/zeros"
		works api.test || start_second || no_second # the disk watchdog may have stopped the prison
		await 20000 works api.test || echo 'nothing works after that'
		git airlock clear --discard-pending >"$said" 2>&1
	else
		no_second
	fi
	cd "$outer" && if is_root; then umount "$disk" && rmdir "$disk"; else rm -rf "$second"; fi
}
