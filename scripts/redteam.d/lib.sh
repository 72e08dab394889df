# Functions for the cases of scripts/redteam.
#
# A case is a function with the name of its row in the catalogue. It describes the attack (tries), lets the agent run it
# (attack), and checks the result (lands, held, seen, ...). With --prove it attacks a workspace without an airlock. There
# "plainly" acts like a user or a tool with plain git, and the attack must succeed.
# shellcheck shell=bash disable=SC2034,SC2154

tried=0 surprises=0 untried=0 missing=0
staged='' fresh_stage='' stages=0

# begin builds the programs, or takes those that were built before.
begin() {
	[ -n "${AIRLOCK_TEST_PROGRAMS-}" ] || need_go
	have git || die 'there is no git on PATH' 'sudo apt-get install git'
	base=$(mktemp -d)
	chmod 755 "$base"
	rows=$base/rows
	mkdir "$base/bin" "$rows"
	if [ -n "${AIRLOCK_TEST_PROGRAMS-}" ]; then
		cp "$AIRLOCK_TEST_PROGRAMS"/* "$base/bin/" || exit 1
	else
		build "$base/bin/git-airlock" || exit 1
		case $ids in *N[0-9]*) (cd "$top" && go build -o "$base/bin/internet" ./scripts/internet) || exit 1 ;; esac
	fi
	PATH=$base/bin:$PATH
	settle 0
}

# settle N makes the environment of a job: a home for a user, a folder for repositories, a secret of the host.
settle() {
	work=$base/$1
	mkdir "$work" "$work/home" "$work/canaries"
	chmod 1777 "$work/canaries"
	export PATH HOME=$work/home GIT_CONFIG_NOSYSTEM=1 GIT_CEILING_DIRECTORIES=$work LC_ALL=C.UTF-8 GIT_PAGER=cat
	unset XDG_CONFIG_HOME GIT_DIR GIT_WORK_TREE GIT_CONFIG_GLOBAL
	umask 022
	said=$work/said secret=THE-SECRET-OF-THE-HOST-$RANDOM
	printf '[core]\n\tabbrev = %s\n' "$secret" >"$work/secret"
	user='Ursula User <ursula@host.example>'
	git config --global user.name 'Ursula User'
	git config --global user.email ursula@host.example
	git config --global init.defaultBranch main
	git config --global advice.detachedHead false
	cd "$work" || exit 1
}

# possible exits if the backend does not work here.
possible() {
	git airlock doctor >"$said" 2>&1
	if grep -q "^$backend: works" "$said"; then return; fi
	printf 'nothing tried: no %s prison is possible here\n' "$backend"
	grep -A 3 "^$backend:" "$said"
	if required "$backend"; then exit 1; fi
	exit 77
}

# finish ends running jobs, and waits until they have cleared their airlocks.
finish() {
	local running
	running=$(jobs -p)
	# shellcheck disable=SC2086
	[ -z "$running" ] || kill $running 2>/dev/null
	wait
	cd / && rm -rf "$base"
}

# required NEED reports whether AIRLOCK_TEST_REQUIRE names a feature.
required() { case ,${AIRLOCK_TEST_REQUIRE-}, in *,"$1",*) true ;; *) false ;; esac; }

# The table.

# cell TEXT prints any text as one cell of a table.
cell() { printf %s "$1" | tr '\n|\t' ' / ' | LC_ALL=C tr -d '\000-\037\177' | cut -c1-300; }

# has reports whether its input has a matching line. It reads the input to the end: grep -q ends early, which kills the
# writer, and pipefail makes that a failure.
has() { grep "$@" >/dev/null; }

tries() { title=$1; }
expected() { want=${want:+$want; }$1; }
seen() { sight=${sight:+$sight; }$1; }
surprised() { surprise=1 sight=${sight:+$sight; }"**$1**"; }

# untriable NEED REASON reports that a case cannot be tried here. It succeeds, so that a case can end with it.
untriable() { why_not=$2 need=$1; }
# no_plain REASON ends a case of --prove whose attack has no target in plain git.
no_plain() { [ -n "$proving" ] && why_not="nothing to prove it on: $1" need=-; }

# run_case ID runs a case and prints its row.
run_case() {
	title='' want='' sight='' surprise='' why_not='' need='' tree='' message='' brief='' id=$1
	canary=$work/canaries/$id
	if [ -n "$proving" ]; then plain_stage; else stage; fi || { surprised 'there is no stage for it' && title=$id; }
	[ -n "$surprise" ] || "$id"
	if [ -z "$proving" ] && [ -z "$surprise$why_not" ]; then
		quiet
		clean_up
	fi
	row
	if [ -n "$proving$fresh_stage$surprise" ]; then raze; fi
	rm -f "$said" "$work/agent.err" "$work/agent.out"
}

row() {
	if [ -n "$surprise" ]; then
		surprises=$((surprises + 1)) tried=$((tried + 1))
		detail >&2
	elif [ -n "$why_not" ]; then
		untried=$((untried + 1)) sight="not tried: $why_not" want=${want:--}
		if required "$need"; then missing=$((missing + 1)) sight="**$sight**"; fi
	else
		tried=$((tried + 1))
	fi
	printf '| %s | %s | %s | %s |\n' "$id" "$(cell "$title")" "$(cell "$want")" "$(cell "$sight")"
}

# detail prints output that may explain a surprise.
detail() {
	printf '%s: %s\n' "$id" "$sight"
	[ ! -s "$work/agent.err" ] || tail -n 5 "$work/agent.err" | cat -v | sed 's/^/    agent: /'
	[ -n "$proving" ] || git airlock status 2>&1 | cat -v | sed 's/^/    /'
	[ ! -s "$said" ] || tail -n 5 "$said" | cat -v | sed 's/^/    said: /'
}

# Setup.

# outer_repository makes $outer, the user's repository, with secrets outside of the snapshot's branch.
outer_repository() {
	stages=$((stages + 1))
	outer=$work/r$stages
	git init -q "$@" "$outer" && cd "$outer" || return 1
	mkdir docs tools
	printf 'one\ntwo\nthree\n' >README
	echo .env >.gitignore
	echo text >docs/text
	printf '#!/bin/sh\ncat\n' >tools/filter
	chmod +x tools/filter
	git add -A && git commit -qm base || return 1
	git switch -q -c private && cp "$work/secret" private && git add private && git commit -qm "$secret" && git switch -q main || return 1
	private=$(git rev-parse private:private)
	echo 'the user says' >.env
}

# stage makes a repository with an airlock, unless the previous case left one.
stage() {
	[ -z "$staged" ] || return 0
	outer_repository && begin_airlock
}

# fresh SETUP [git init options] makes a new repository for a case, and runs SETUP before the start.
fresh() {
	raze
	fresh_stage=1
	local setup=$1
	shift
	if ! outer_repository "$@" || ! eval "$setup"; then surprised 'the repository could not be made' && return 1; fi
	if [ -n "$proving" ]; then plain_workspace; else begin_airlock; fi || { surprised "start: $(tail -n 2 "$said")" && return 1; }
}

# begin_airlock starts the airlock of a stage.
begin_airlock() {
	git airlock start --backend "$backend" ${image:+--image "$image"} ${runtime:+--runtime "$runtime"} >"$said" 2>&1 || return 1
	staged=1
	learn
	inside 'cp -a .git /tmp/good'
}

# learn reads the id and the workspace of the airlock.
learn() {
	workspace=$(field workspace) uid=$(field uid) airlock=$(field id)
}

# raze removes the airlock and the repository.
raze() {
	if [ -n "$staged" ] && cd "$outer"; then
		timeout "$hang" git airlock clear --discard-pending >"$said" 2>&1 || {
			sed "s/^/$id: clear: /" "$said" >&2
			surprises=$((surprises + 1))
		}
	fi
	staged='' fresh_stage=''
	cd "$work" || return
	while mountpoint -q "$work/disk" 2>/dev/null; do umount "$work/disk" || break; done
	rm -rf r[0-9]* canaries/* disk image*
	if [ -n "${disk_lock-}" ]; then
		rm -rf "$AIRLOCK_TEST_DISK/r"
		exec {disk_lock}<&-
		disk_lock=''
	fi
}

# plain_stage makes a repository with the workspace of a careless tool.
plain_stage() { outer_repository && plain_workspace; }
plain_workspace() {
	workspace=.plain-0000
	plain=$outer/$workspace
	echo "/$workspace/" >>.git/info/exclude
	git init -q "$plain" && cd "$plain" || return 1
	git config user.name Ghost && git config user.email ghost@inside.example
	git -C "$outer" archive main | tar -x && git add -A && git commit -qm 'Initial commit' || return 1
	cd "$outer" || return 1
}

# The agent.

# agent_words are shell functions for attacks. The payload of each attack creates a file that does not exist inside.
agent_words() {
	# Outside of a prison, /tmp belongs to everybody.
	printf 'id=%q canary=%q outer=%q secret_file=%q workspace=%q private=%q scratch=%q\n' \
		"$id" "$canary" "$outer" "$work/secret" "$workspace" "$private" "$(if [ -n "$proving" ]; then echo "$work"; else echo /tmp; fi)"
	cat <<'TEXT'
not() { ! "$@"; }
fire="touch '$canary' 2>/dev/null;"
# payload FILE... writes programs that run the payload.
payload() {
	for file; do
		mkdir -p "$(dirname "$file")"
		printf '#!/bin/sh\n%s\nexit 0\n' "$fire" >"$file"
		chmod +x "$file"
	done
}
told() {
	echo "tree $(git rev-parse 'main^{tree}')"
	echo "message $(git cat-file commit main | sed '1,/^$/d' | sha256sum | cut -d' ' -f1)"
}
# work makes a commit with unique content.
work() {
	echo "$id $$ $(date +%s%N)" >>work
	git add work
	git commit -q -m "$id"
	told
}
# prepared makes a commit, $next. published later moves main to it. Otherwise the commit could land before it is damaged.
prepared() {
	echo "$id $$ $(date +%s%N)" >>work
	git add work
	next=$(git commit-tree -m "$id" -p main "$(git write-tree)")
}
published() {
	echo "$next" >.git/refs/heads/main
	echo "next $next"
	echo "tree $(git rev-parse "$next^{tree}" 2>/dev/null || :)"
}
# file_of prints the path of a loose object.
file_of() { git rev-parse "$1" | sed 's|^..|.git/objects/&/|'; }
# raw writes a tree with the one entry MODE NAME OBJECT, without any check.
raw() { perl -e 'print "$ARGV[0] $ARGV[1]\0", pack("H*", $ARGV[2])' "$1" "$2" "$3" | git hash-object -t tree -w --stdin --literally; }
blob() { printf %s "${1-x}" | git hash-object -w --stdin; }
# becomes TREE makes main a commit of that tree.
becomes() {
	git update-ref refs/heads/main "$(git commit-tree -m "$id" -p main "$1")"
	echo "tree $1"
}
TEXT
}

# inside TEXT runs a shell script as the agent.
inside() { timeout "$hang" git airlock visit -- sh -euc "$(agent_words)
$1" >"$work/agent.out" 2>"$work/agent.err" </dev/null; }

# attack TEXT runs an attack as the agent. If the attack prints the id of the resulting tree of main, it is in $tree.
attack() {
	[ -z "$surprise" ] || return 1
	before=$(outside)
	if [ -n "$proving" ]; then
		(cd "$plain" && timeout "$hang" sh -euc "$(agent_words)
$1" >"$work/agent.out" 2>"$work/agent.err" </dev/null)
	else
		inside "$1"
	fi || surprised "the attack could not be made: exit status $?"
	begun_at=$(now)
	heard
}

# attack_may_end is an attack during which the agent itself may be ended.
attack_may_end() {
	attack "$1"
	case $surprise$sight in 1'**the attack could not be made'*) surprise='' sight='' ;; esac
}

# heard reads the agent's output about its commit.
heard() {
	tree=$(sed -n 's/^tree //p' "$work/agent.out" | tail -n 1)
	message=$(sed -n 's/^message //p' "$work/agent.out" | tail -n 1)
	next=$(sed -n 's/^next //p' "$work/agent.out" | tail -n 1)
}
message_of() { git cat-file commit "$1" | sed '1,/^$/d' | sha256sum | cut -d' ' -f1; }

# restored restores the initial state of the inner repository.
restored() {
	inside 'cd /workspace; chmod -R u+rwX . 2>/dev/null || :
		find . -mindepth 1 -maxdepth 1 -exec rm -rf {} + ; cp -a /tmp/good .git; git reset -q --hard'
}

# Results.

# slowness is the factor by which time limits are extended on a busy machine. It is computed from the number of jobs, the load, which reacts
# late, and the number of processes that could run at this moment.
slowness() {
	awk -v cores="$(nproc)" -v jobs="$jobs" '{ split($4, running, "/"); n = $1 > running[1] ? $1 : running[1]; n = int((n > jobs ? n : jobs) / cores + 0.99)
		print (n < 1 ? 1 : n > 20 ? 20 : n) }' /proc/loadavg
}
now() { date +%s%N; }
since() { echo $((($(now) - $1) / 1000000)); }
# hang is the time in seconds after which a command hangs. The agent's programs have a low priority: on a machine with thirty busy processes
# they take fifty times as long.
hang=1000
# await MILLISECONDS COMMAND... waits until the command succeeds. The time is what an idle machine may take. A late result is not a wrong one, so
# it waits for at least five minutes: the table has the times.
await() {
	local most=$(($1 * $(slowness)))
	[ "$most" -gt 300000 ] || most=300000
	local end=$(($(now) + most * 1000000))
	shift
	until "$@"; do
		[ "$(now)" -lt "$end" ] || return 1
		sleep 0.05
	done
}

# field NAME prints a field of the status document.
field() { timeout "$hang" git airlock status --json 2>/dev/null | sed -n "s/^ *\"$1\": \"*\([^\",]*\)\"*,*\$/\1/p" | sed -n 1p; }
# hold prints the reason and the message of the first hold.
hold() { timeout "$hang" git airlock status --json 2>/dev/null | sed -n '/^  "hold": {/,/^  }/p' | sed -n 's/^ *"\(reason\|message\)": "\(.*\)",*$/\2/p' | paste -s -d ' '; }
held_by() { hold | has -E -e "^($1) .*${2-}"; }
free() { [ "$(field pending)" = 0 ] && [ -z "$(hold)" ]; }

# outside describes everything of the user that an attack must not change.
outside() {
	git -C "$outer" for-each-ref --format='%(objectname) %(refname)' refs/heads refs/tags refs/stash
	git -C "$outer" symbolic-ref -q HEAD
	(cd "$outer" && sha256sum .git/config && { git diff-files --name-status; git ls-files -s; } &&
		find . -path ./.git -prune -o -name "${workspace:-.none}" -prune -o -type f -print0 | sort -z | xargs -0 sha256sum)
}

# is_landed reports whether the branch has the agent's tree, and the landing is complete.
is_landed() { [ "$(git rev-parse 'main^{tree}')" = "$tree" ] && [ ! -e "$outer/.git/index.lock" ]; }

# lands checks that the agent's commit lands unchanged within a moment.
lands() {
	expected 'it lands as it is'
	if [ -n "$surprise" ]; then return; fi
	if [ -z "$tree" ]; then surprised 'the attack names no tree' && return; fi
	if await "${1:-10000}" is_landed; then
		seen "landed after $(since "$begun_at") ms"
	else
		surprised "not landed: $(hold)"
	fi
	[ -z "$message" ] || [ "$(message_of main)" = "$message" ] || surprised 'the message is another'
	[ "$(git log -1 --format='%an <%ae> %cn <%ce>' main)" = "$user $user" ] || surprised 'it is by somebody else'
	user_looks
}

# held REASON [PATTERN] checks that the hold REASON, with a matching message, appears, and that nothing of the user has
# changed.
held() {
	expected "held: $1${2:+ ($2)}"
	if [ -n "$surprise" ]; then return; fi
	if await 5000 held_by "$1" "${2-}"; then
		seen "$(hold) (after $(since "$begun_at") ms)"
	else
		surprised "not held like that: $(hold)"
	fi
	user_looks
	[ "$(outside)" = "$before" ] || surprised 'something of the user changed'
}

# held_somehow REASONS checks for one of these hold reasons.
held_somehow() { held "$1"; }

# flagged RULE checks that the last landed commit is flagged with the rule, in its note and in status.
flagged() {
	expected "flagged: $1"
	if ! git notes --ref=airlock show main 2>/dev/null | has "^Airlock-Policy: .*$1"; then surprised 'its note does not say so'; fi
	# A landing is complete before its cycle has written what it did.
	if await 5000 status_says "$1"; then seen "flagged: $1"; else surprised 'status does not say so'; fi
}
status_says() { git airlock status | has -F -e "$1"; }

# mends checks that the hold ends by itself when the agent repairs its cause: with TEXT, or by restoring the initial state.
mends() {
	expected 'mending it inside ends the hold'
	if [ -n "$surprise" ]; then return; fi
	if [ -n "${1-}" ]; then inside "$1"; else restored; fi || surprised 'it could not be mended'
	inside work || surprised 'no commit could be made after that'
	heard
	begun_at=$(now)
	if await 10000 is_landed; then seen "mended after $(since "$begun_at") ms"; else surprised "mending does not help: $(hold)"; fi
}

# user_looks runs the usual commands of a user. None may hang, run the agent's code, show a secret of the host, or print raw
# characters.
user_looks() {
	local command began
	[ -z "$brief" ] || return 0
	: >"$said"
	for command in 'git airlock status' 'git airlock status --json' 'git airlock promote' 'git airlock list' 'git airlock log -2' \
		'git airlock policy' 'git status' 'git diff' 'git log -1 --stat' 'git add -A --dry-run'; do
		began=$(now)
		(cd "$outer" && timeout "$hang" sh -c "$command") >"$work/one" 2>&1 </dev/null
		case $? in
		0 | 3) ;;
		124) surprised "\"$command\" hangs" ;;
		*) surprised "\"$command\" fails: $(head -n 1 "$work/one")" ;;
		esac
		case $command in 'git airlock status'*) [ "$(since "$began")" -lt $((5000 * $(slowness))) ] || surprised "\"$command\" takes $(since "$began") ms" ;; esac
		case $command in git\ airlock*) cat "$work/one" >>"$said" ;; esac
	done
	hygienic "$said"
}

# hygienic FILE checks that the output contains no raw character and no secret of the host.
hygienic() {
	if LC_ALL=C grep -q -P '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8b-\x8f\xaa-\xae]|\xe2\x81[\xa6-\xa9]' "$1"; then
		surprised "a raw character is printed: $(LC_ALL=C grep -P '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8b-\x8f\xaa-\xae]' "$1" | head -n 1 | cat -v)"
	fi
	if grep -q -F -e "$secret" "$1"; then surprised "a secret of the host's is printed"; fi
	if grep -q -e '^panic:' -e '^goroutine ' "$1"; then surprised 'the program panicked'; fi
}

in_progress() { find "$outer/.git" -maxdepth 1 '(' -name rebase-apply -o -name index.lock -o -name MERGE_HEAD ')'; }
tidy() { [ -z "$(in_progress)" ]; }
ran() { [ -e "$canary" ]; }
# quiet checks that none of the agent's code ran on the host, and that no secret reached the agent or a landed commit.
quiet() {
	expected 'nothing runs'
	if ran; then surprised 'the payload ran on the host'; else seen 'nothing ran'; fi
	if git -C "$outer" log --format=%B%n%an%n%ae --notes=airlock main "refs/airlock/$airlock/promoted" 2>/dev/null | has -F -e "$secret"; then
		surprised 'a secret landed'
	fi
	[ "$(cat "$outer/.env" 2>/dev/null)" = 'the user says' ] || surprised "the user's .env is not what it was"
	await 2000 tidy || surprised "left in .git: $(in_progress)"
}

# clean_up restores the initial state of the repository.
clean_up() {
	[ -z "$fresh_stage" ] || return 0
	restored || { surprised 'the workspace could not be restored' && return; }
	git airlock promote >"$said" 2>&1 || surprised "something is still held: $(tail -n 1 "$said")"
}

# mailed lands commits by format-patch and am.
# shellcheck disable=SC2016
plain_words='mailed() { git -C "$plain" format-patch -q --stdout "$(git -C "$plain" rev-list --max-parents=0 main | tail -n 1)..main" | git am -q; }
'

# plainly COMMANDS [SUCCESS] acts like a careless user or tool with plain git, and checks that the attack succeeds. Without
# --prove it fails, so that the case continues.
plainly() {
	[ -n "$proving" ] || return 1
	expected 'plain git falls for it'
	(cd "$outer" && timeout "$hang" sh -c "plain=$plain; $plain_words $1") >"$said" 2>&1 </dev/null
	local status=$?
	if eval "${2:-ran}"; then seen "it did: ${2:-the payload ran}"; else surprised "it did not: ${2:-the payload did not run}"; fi
}

# bounded checks that the daemon has used at most 256 MiB of memory.
bounded() {
	local pid peak
	pid=$(field pid)
	peak=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/${pid:-0}/status" 2>/dev/null)
	expected 'memory stays small'
	if [ "${peak:-999999}" -le 262144 ]; then seen "daemon: $((peak / 1024)) MB at most"; else surprised "the daemon took ${peak:-unknown} kB"; fi
}
