# I: the user's object store, and what holds what.
# shellcheck shell=bash disable=SC2016,SC2034,SC2154

# whole wants every object that a ref of the user's reaches.
whole() {
	expected 'every object is there'
	if git -C "$outer" rev-list --objects --all --quiet >"$said" 2>&1; then seen 'nothing is missing'; else surprised "lost: $(tail -n 1 "$said")"; fi
}

# beside COMMAND lands ten commits while a command of the user's runs again and again.
beside() {
	local at
	touch "$work/$id.on"
	(cd "$outer" && while [ -e "$work/$id.on" ]; do sh -c "$1" >/dev/null 2>&1; done) &
	at=$!
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		attack work
		lands 30000
		[ -z "$surprise" ] || break
	done
	rm -f "$work/$id.on"
	wait "$at"
	whole
}

I1() {
	tries 'git gc during landings'
	no_plain 'it is a race that git fetch does not lose' && return
	fresh 'git config core.logAllRefUpdates false' || return
	brief=1
	beside 'git gc -q; git repack -dq'
}

I2() {
	tries 'objects that no ref reaches yet, and a gc that prunes unreachable objects'
	fresh 'git config core.logAllRefUpdates false' || return
	brief=1
	if [ -n "$proving" ]; then
		attack work
		plainly 'main=$(git -C $plain rev-parse main); echo $main | git -C $plain pack-objects -q --revs --stdout | git unpack-objects -q; git gc -q --prune=now; git cat-file -e $main' '! git -C "$outer" cat-file -e "$(git -C "$plain" rev-parse main)" 2>/dev/null'
		return
	fi
	beside 'git repack -adq; git gc -q --prune=now'
}

I3() {
	tries 'a repository that loses landed objects'
	no_plain 'git keeps no second copy' && return
	attack work
	lands
	rm -f "$outer"/.git/objects/pack/pack-* 2>/dev/null
	attack work
	lands
	whole
}

I4() {
	tries 'one refused commit behind good ones'
	attack 'work; work; good=$(git rev-parse main); told >$scratch/good-told; becomes "$(raw 100644 .git "$(blob)")" >/dev/null; git commit -q --allow-empty -m after; cat $scratch/good-told'
	plainly 'git -c fetch.fsckObjects=true fetch -q $plain main' '! git -C "$outer" rev-parse -q --verify FETCH_HEAD >/dev/null' && return
	brief=1
	lands
	expected 'held: inner-invalid, with the commit'
	if await 5000 held_by inner-invalid 'commit [0-9a-f]{40}: .*\.git'; then seen "$(hold)"; else surprised "not held like that: $(hold)"; fi
	case $(hold) in *'\n'*) surprised 'a line break is printed as \n' ;; esac
	mends
}

I5() {
	local undone
	tries 'a side branch that contains a commit which the user has removed'
	fresh : || return
	attack 'echo key >key; git add key; git commit -qm key; git branch side; work'
	[ -n "$proving" ] || lands
	undone=$(git -C "${plain:-$outer}" log --format=%H -1 -- key)
	plainly 'git fetch -q $plain main && git merge -q --ff-only FETCH_HEAD 2>/dev/null || git reset -q --hard FETCH_HEAD; git -C $plain switch -q side; git -C $plain commit -q --allow-empty -m beside; git rebase -q --onto HEAD~2 HEAD~1; git fetch -q $plain side; git merge -q -m side FETCH_HEAD' 'git -C "$outer" rev-list HEAD | has "$undone"' && return
	(cd "$outer" && git rebase -q --onto HEAD~2 HEAD~1) || surprised 'the user cannot rebase'
	brief=1
	attack 'git switch -q side; echo beside >beside; git add beside; git commit -qm beside; git switch -q main; git merge -q -m merged side'
	expected 'it lands without that commit'
	if await 10000 test -e "$outer/beside"; then seen 'landed'; else surprised "not landed: $(hold)"; fi
	if git -C "$outer" rev-list main | has "$undone"; then surprised 'what was taken off is an ancestor again'; fi
}

I6() {
	tries 'a main that exists and is not a ref'
	attack 'cp .git/refs/heads/main $scratch/main; echo nonsense >.git/refs/heads/main'
	plainly 'git -C $plain log' '! git -C "$plain" rev-parse -q --verify main >/dev/null' && return
	held inner-invalid 'refs/heads/main is broken: it holds nonsense'
	attack 'echo "ref: refs/heads/main" >.git/refs/heads/main'
	held inner-invalid 'refs/heads/main'
	inside 'cp $scratch/main .git/refs/heads/main'
	mends
}
