# G: what would take all time, all memory or all patience.
# shellcheck shell=bash disable=SC2016,SC2034,SC2154

# within SECONDS WHAT COMMAND... wants a command to end in time, whatever its exit status. What it says is in $said.
within() {
	local most=$1 what=$2 from
	shift 2
	from=$(now)
	timeout -k 5 $((most * $(slowness) * 4)) "$@" >"$said" 2>&1 </dev/null
	if [ "$(since "$from")" -gt $((most * 1000 * $(slowness))) ]; then surprised "$what took $(since "$from") ms"; else seen "$what ended after $(since "$from") ms"; fi
}

G1() {
	local file
	tries 'a recipe, and other descriptions of an environment, of 80 kB of dotted keys'
	no_plain 'plain git makes no environment' && return
	expected 'start refuses at once, and names the limit'
	fresh : || return
	for file in coding-environment.toml mise.toml; do
		{ yes a. | head -n 40000 | tr -d '\n'; echo 'a = 1'; } >"$file"
		git add "$file"
		git commit -qm "$file"
	done
	git airlock stop >"$said" 2>&1
	within 10 'start' git airlock start --backend "$backend" ${image:+--image "$image"}
	grep -q 'coding-environment.toml:1: more than 32 levels of nesting' "$said" || surprised "$(head -n 1 "$said")"
	git rm -q coding-environment.toml && git commit -qm none
	within 10 'init' git airlock init
	git airlock start --backend "$backend" ${image:+--image "$image"} >"$said" 2>&1
}

# ends SECONDS SIGNAL COMMAND... sends a signal to a command that is at work, and wants it to end within a moment.
ends() {
	local delay=$1 signal=$2 pid from
	shift 2
	"$@" >"$said" 2>&1 </dev/null &
	pid=$!
	sleep "$delay"
	from=$(now)
	kill -"$signal" "$pid" 2>/dev/null || { seen "$3 had ended"; wait "$pid"; return; }
	if await 2000 gone "$pid"; then seen "$3 ended $(since "$from") ms after SIG$signal"; else
		surprised "$3 goes on after SIG$signal"
		kill -KILL "$pid"
	fi
	wait "$pid" 2>/dev/null
}
gone() { ! kill -0 "$1" 2>/dev/null; }

G2() {
	tries 'attributes: 20,000 macros that use each other, and as many lines that use them'
	no_plain 'plain git looks at no rules' && return
	expected 'held or landed in time; promote, stop and clear end after ^C and by themselves'
	fresh 'git config filter.x.clean cat; git config filter.x.smudge cat; git config airlock.limit.check 5' || return
	attack 'perl -e "for (1 .. 20000) { print \"[attr]m\$_ m\", \$_ + 1, \"\\n\" } print \"*.x\$_ m1\\n\" for 1 .. 20000" >.gitattributes; git add .gitattributes; git commit -qm attributes; told'
	ends 0.7 TERM git airlock promote
	within 30 promote git airlock promote
	within 30 status git airlock status
	within 30 stop git airlock stop
	within 30 clear git airlock clear --discard-pending
	staged=''
}

G3() {
	tries 'a folder of 60,000 names that differ only in case'
	no_plain 'plain git looks at no rules' && return
	expected 'promote ends at once after SIGTERM, and by itself within a minute'
	fresh : || return
	attack 'b=$(blob); perl -e "for \$i (0 .. 59999) { my @c = split //, q(abcdefghijklmnop); for (0 .. 15) { \$c[\$_] = uc \$c[\$_] if \$i >> \$_ & 1 } print qq(100644 blob \$ARGV[0]\td/), @c, qq(\n) }" "$b" | git update-index --index-info
		git commit -qm alike; told'
	ends 1 TERM git airlock promote
	within 60 promote git airlock promote
	held policy case-collision
	within 30 clear git airlock clear --discard-pending
	staged=''
}

G4() {
	tries 'a text that uses the work budget of a commit'
	no_plain 'plain git looks at no rules' && return
	# On a machine with fifty busy processes, the export takes longer than the usual minute.
	fresh 'git config airlock.limit.work 8m; git config airlock.limit.time 600' || return
	attack 'for i in 1 2 3 4 5 6 7 8; do yes "api_key = \"x$i y2z3w4v5u6t7s8\"" | head -c 3000000 >t$i; done; git add .; git commit -qm much; told'
	within 30 promote git airlock promote
	held policy budget
	within 30 'promote --accept' git airlock promote --accept budget
	lands
}
