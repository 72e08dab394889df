# G: what would take all time, all memory or all patience.
# shellcheck shell=bash disable=SC2016,SC2154

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
	expected 'start refuses at once, and says the limit'
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
