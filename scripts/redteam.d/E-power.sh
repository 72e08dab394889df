# E5: a power failure.
# shellcheck shell=bash disable=SC2154

E5() {
	tries 'a power failure in the middle of landings: a disk with only the synced data'
	no_plain 'am leaves half a batch, as in E3' && return
	fresh powered_disk || return
	[ -z "$why_not" ] || return
	local i stopped
	meanwhile "$(commits 40 0.2)"
	for i in 1 2 3 4 5 6 7 8; do
		sleep "0.$i"
		# All that writes is stopped at once, and what it has not synced is not in the image.
		stopped="$(ps -o pid= -s "$(daemon)") $(ps -o pid= -u "$uid")"
		# shellcheck disable=SC2086
		kill -STOP $stopped 2>/dev/null
		sleep 0.1
		cp --sparse=always "$work/image" "$work/image.$i"
		# shellcheck disable=SC2086
		kill -CONT $stopped 2>/dev/null
	done
	wait "$agent" || surprised 'the agent was disturbed'
	each_once 40
	expected 'after each failure, a landing is complete or undone'
	cd "$work" || return
	git -C "$outer" airlock clear --discard-pending >"$said" 2>&1 || surprised "clear: $(tail -n 1 "$said")"
	staged=''
	umount "$work/disk"
	for i in 1 2 3 4 5 6 7 8; do
		after_failure "$i"
		umount "$work/disk" || break
	done
	mount -o loop "$work/image" "$work/disk" && cd "$outer" || surprised 'the disk is gone'
	rm -f "$work"/image.*
}

# powered_disk puts the repository onto a disk of its own, of which the kernel writes nothing by itself for minutes.
powered_disk() {
	mkdir -p "$work/disk"
	if ! is_root || ! { truncate -s 200M "$work/image" && mkfs.ext4 -q -F "$work/image" && mount -o loop,commit=300 "$work/image" "$work/disk"; } >"$said" 2>&1; then
		untriable - 'only root can mount a disk that loses power'
		return 0
	fi
	mv "$outer" "$work/disk/r" && ln -s "$work/disk/r" "$outer" && cd "$work/disk/r" && outer=$work/disk/r
	sync
}

git_locks() { find .git -name '*.lock' -not -path '.git/airlock/*'; }

# after_failure N looks at what is on the N-th disk.
after_failure() {
	if ! mount -o loop "$work/image.$1" "$work/disk" 2>"$said"; then surprised "no disk: $(cat "$said")" && return; fi
	cd "$outer" || { surprised 'no repository' && return; }
	local locks landed commit
	timeout "$hang" git airlock promote >"$said" 2>&1
	timeout "$hang" git airlock status >>"$said" 2>&1
	await 5000 tidy || surprised "left: $(in_progress)"
	locks=$(git_locks)
	if [ -n "$locks" ]; then
		# Git leaves its locks when the power fails, and nobody can tell whose they were: it has to be said.
		seen 'git left a lock'
		git airlock clear --discard-pending >>"$said" 2>&1
		grep -q '\.lock' "$said" || surprised "nobody names $locks"
		# shellcheck disable=SC2086
		rm -f $locks
		git airlock promote >"$said" 2>&1
	fi
	landed=$(subjects | grep -c '^c[0-9]*$')
	[ "$(subjects | head -n "$landed" | tac | tr '\n' ' ')" = "$(seq "$landed" | sed 's/^/c/' | tr '\n' ' ')" ] || surprised "landed: $(subjects | tr '\n' ' ')"
	for commit in $(git rev-list -n "$landed" main); do
		git notes --ref=airlock show "$commit" 2>/dev/null | has ^Airlock-Version || surprised "no note: $commit"
	done
	[ -z "$(git status --porcelain)" ] || surprised "git status: $(git status --porcelain | head -n 1)"
	sound || surprised 'git fsck complains'
	seen "$landed"
	[ -z "$(field id)" ] || timeout "$hang" git airlock clear --discard-pending >"$said" 2>&1 || surprised "clear: $(tail -n 1 "$said")"
	cd "$work" || return
}
