# N: the network by names. The attempts are in the folder network, with the ids of the matrix. A prison tries all of them in the world of
# scripts/internet, whose servers log what they hear: nothing may be heard of an attempt that must be refused.
#
# An ordinary user cannot make a world. AIRLOCK_TEST_WORLD names one, in which the user then must be already: see scripts/redteam-network.
# shellcheck shell=bash disable=SC2034,SC2154

network_rules=(files.test api.test '*.a.test' '**.b.test' bücher.test git.test:22 metadata.test lan.test loopback.test host.test late.test mapped.test
	nat64.test sixtofour.test local6.test loopback6.test both.test shared.test zero.test azure.test rebind.test 'db.test:5432 =10.9.9.9'
	'GET paths.test/pub/**' 'GET asks.test/pub/**')

# The matrix: every id has a row, of the attempts or of the life of a network.
matrix() {
	printf '%s\n' N{01..29} P{01..08} A{01..17} A{20..42} A{45..49} D{01..22} L{01..19} T{01..20} H{01..24} C{01..45} S{01..10}
}

# The values of credentials. No program inside may get them.
real_key=THE-REAL-KEY-$RANDOM$RANDOM
credential() { git config --add "airlock.credential.$1" "$2"; }
credentials() {
	local name host
	for name in key scoped limited plain bad gone; do
		credential $name.source env:REAL_KEY
		credential $name.env ${name^^}
		credential $name.header Authorization
		credential $name.format 'Bearer %s'
	done
	for host in key scoped limited plain; do credential $host.host $host.test; done
	for host in expired nameless stranger keylan; do credential bad.host $host.test; done
	credential gone.host gone.test
	git config airlock.credential.gone.source command:false
	credential scoped.methods GET
	credential scoped.paths '/v1/**'
	credential limited.limit 2
	credential plain.mode base
}

# enter_world makes a world, or enters the given one. $world has its logs, $host runs a program in it.
enter_world() {
	if [ -n "${AIRLOCK_TEST_WORLD-}" ]; then
		world=$AIRLOCK_TEST_WORLD host=env
		return
	fi
	is_root || { untriable network 'only root can make a world (AIRLOCK_TEST_WORLD)' && return 1; }
	have ip || { untriable network 'there is no ip (iproute2)' && return 1; }
	world=$work/world$stages host=$world/host
	mkdir "$world"
	coproc internet "$world" 2>"$work/world.err"
	world_pid=$! world_input=${COPROC[1]}
	await 60000 test -e "$world/bundle.pem" || { surprised "no world: $(head -n 1 "$work/world.err")" && leave_world && return 1; }
}

# leave_world ends a world that enter_world has made.
leave_world() {
	[ -n "${world_pid-}" ] || return 0
	exec {world_input}>&-
	wait "$world_pid"
	world_pid=''
}

# The world's proxy, which logs who asks it.
proxy=198.51.100.10:3128

# begin_network MODE starts an airlock in the world.
begin_network() {
	local rule options=()
	if [ "$1" = allowlist ]; then
		for rule in "${network_rules[@]}"; do options+=(--allow "$rule"); done
		options+=(--deny no.a.test)
	fi
	raze
	fresh_stage=1
	if ! outer_repository || ! credentials || ! HTTP_PROXY=http://$proxy HTTPS_PROXY=http://$proxy http_proxy=http://$proxy https_proxy=http://$proxy ALL_PROXY=socks5h://$proxy \
		REAL_KEY=$real_key "$host" git airlock start --backend "$backend" ${image:+--image "$image"} ${runtime:+--runtime "$runtime"} \
		--network "$1" "${options[@]}" >"$said" 2>&1; then
		surprised "start: $(tail -n 2 "$said")"
		return 1
	fi
	staged=1
	learn
}

# late_address gives the host another address. A given world may have a pipe that asks root for that.
late_address() {
	if [ -z "${AIRLOCK_TEST_WORLD-}" ]; then
		"$host" ip addr add 203.0.113.77/32 dev uplink
	elif [ -p "$world/late" ]; then
		echo >"$world/late"
		await 10000 has_late_address
	fi
}
has_late_address() { ip -4 addr show dev uplink | has -F -e 203.0.113.77; }

# attempts [STATEMENT] prints the program that tries all rows.
attempts() {
	cat "$cases"/network/lib.pl
	printf '%s\n' "${1-}"
	# shellcheck disable=SC2016
	[ -z "${AIRLOCK_TEST_WORLD-}" ] || has_late_address || echo 'our $world_is_given = 1;'
	cat "$cases"/network/{names,ports,addresses,dns,below,tls,http,keys}.pl
	echo 'finish();'
}

# attempt TEXT [WORD...] runs a statement of the functions for attempts in the prison of this folder.
attempt() {
	local text=$1
	shift
	# shellcheck disable=SC2016
	{ cat "$cases"/network/lib.pl && printf 'our $marker = "life"; %s;\n' "$text"; } | timeout "$hang" git airlock visit -- "$@" perl - 2>>"$work/agent.err"
}

# heard_of ID reports whether a server heard of an attempt.
heard_of() { grep -q -i -w -s -e "$1" "$world"/*.log "$world"/local/*.log; }

# good ID EXPECTED SEEN compares.
good() {
	case $3 in 'not tried:'*) return ;; *works*) case $2 in *works*) ;; *) return 1 ;; esac ;; esac
	printf '%s\n' "$3" | has -P -e "$2" || return 1
	case $2 in *works*) ;; *) ! heard_of "$1" ;; esac
}

# print_attempts reads the results of the attempts, and prints a row for each.
print_attempts() {
	local case=$id what expectation result
	while IFS=$'\t' read -r id what expectation result; do
		echo "$id" >>"$work/ids"
		title=$what want=$expectation sight=$result surprise='' why_not=''
		case $result in 'not tried: '*) why_not=${result#not tried: } need=- ;; esac
		case $want in "$refusals") want=refused ;; esac
		if ! good "$id" "$expectation" "$result"; then surprised "BAD$(heard_of "$id" && echo ', a server heard it')"; fi
		row
	done < <(sort "$1")
	id=$case title='' want='' sight='' surprise='' why_not=''
}
refusals='refused|reset|closed|denied|403|no name|unreachable'

# count_bad prints the ids of the rows of a file that are not as expected.
count_bad() {
	local row what expectation result
	while IFS=$'\t' read -r row what expectation result; do
		good "$row" "$expectation" "$result" || printf '%s ' "$row"
	done < <(sort "$1")
}

# tried_all checks that every id of the matrix has a row.
tried_all() {
	local lost
	expected 'every attempt of the matrix has a row'
	lost=$(matrix | grep -v -x -F -f "$work/ids" | paste -s -d ' ')
	[ -z "$lost" ] || surprised "no row: $lost; $(tail -n 1 "$work/agent.err")"
}

# Every attempt of the matrix that one prison can try. With --prove, the same outside of a prison.
N1() {
	tries 'all attempts from one prison'
	enter_world || return
	if [ -n "$proving" ]; then
		# Nothing answers there for the addresses of a prison's network.
		# shellcheck disable=SC2016
		attempts '$patience = 2;' | timeout "$hang" "$host" perl - >"$work/results" 2>"$work/agent.err"
		proves 'outside of a prison' 60
		leave_world
		return
	fi
	if begin_network allowlist; then
		late_address
		: >"$work/ids"
		attempts | timeout "$hang" git airlock visit -- perl - >"$work/results" 2>"$work/agent.err"
		print_attempts "$work/results"
		live
		tries 'all attempts from one prison'
		tried_all
		unheard
		recorded
	fi
	leave_world
}

# proves WHERE LEAST checks that at least this many attempts succeed.
proves() {
	local bad
	title="the attempts, $1" bad=$(count_bad "$work/results")
	expected "at least $2 of them are BAD"
	# shellcheck disable=SC2086
	set -- "$2" $bad
	if [ $(($# - 1)) -ge "$1" ]; then seen "$(($# - 1)) of $(wc -l <"$work/results"): $bad"; else surprised "$(($# - 1)): $bad"; fi
}

# unheard checks that nothing was heard of a name that no rule allows, and of no closed address.
unheard() {
	local names
	expected 'the servers heard of allowed names and addresses only'
	names=$(grep -h -i -s -e evil -e corp -e 'no\.a\.' "$world"/{dns,requests,tls,raw}.log | head -n 3 | paste -s -d ' ')
	[ -z "$names" ] || surprised "heard: $names"
	names=$(grep -h -s -v -x -e "[0-9]* 198\.51\.100\.10" -e '5432 10\.9\.9\.9' "$world"/connections.log | sort -u | head -n 3 | paste -s -d ' ')
	[ -z "$names" ] || surprised "connected: $names"
	[ ! -s "$world/proxy.log" ] || surprised "the proxy of the variables was asked: $(head -n 1 "$world/proxy.log")"
	names=$(grep -h -s -v -x -E -e "(key|scoped|limited|plain)\.test Authorization Bearer $real_key" "$world/keys.log" | head -n 3 | paste -s -d ' ')
	[ -z "$names" ] || surprised "keys: $names"
	[ ! -s "$world/local/connections.log" ] || surprised "connected on this machine: $(head -n 1 "$world/local/connections.log")"
}

# recorded checks that the ledger has no raw character, and names what was refused.
recorded() {
	local ledger
	ledger=$(echo "$outer"/.git/airlock/*/prison/egress.jsonl)
	expected 'the ledger names them'
	if LC_ALL=C grep -q -P '[\x00-\x09\x0b-\x1f\x7f]' "$ledger"; then surprised 'a raw character is in the ledger'; fi
	await 10000 has '"kind":"refusal".*"name":"n12.evil.test"' "$ledger" || surprised 'no line names n12.evil.test'
	await 10000 has '"kind":"refusal".*"address":"169.254.169.254"' "$ledger" || surprised 'no line names the address of metadata'
}

# The same in an open network, which must show what names keep out.
N2() {
	tries 'the attempts, in an open network'
	[ -n "$proving" ] || { untriable - 'it is a case of --prove' && return; }
	enter_world || return
	proving=''
	if begin_network open; then
		attempts | timeout "$hang" git airlock visit -- perl - >"$work/results" 2>"$work/agent.err"
		proves 'in an open network' 25
	fi
	raze
	proving=1
	leave_world
}
