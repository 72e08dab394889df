# E: the daemon, and the user at work.
# shellcheck shell=bash disable=SC2016,SC2154

daemon() { field pid; }
subjects() { git log --format=%s main --; }
sound() { ! git fsck --connectivity-only 2>&1 | has -v dangling; }
# each_once N wants N commits of the agent, c1 to cN, on the branch, each once.
each_once() {
	expected "each of $1 commits lands once"
	if ! await 20000 has_subject "c$1"; then surprised "not landed: $(hold)" && return; fi
	if [ "$(subjects | grep -c '^c[0-9]*$')" = "$1" ] && [ "$(subjects | grep '^c[0-9]*$' | sort -u | wc -l)" = "$1" ]; then seen 'they did'; else surprised "landed: $(subjects | tr '\n' ' ')"; fi
}
has_subject() { subjects | has -x -e "$1"; }
commits='i=0; while [ $i -lt COUNT ]; do i=$((i + 1)); echo $i >>n; git add n; git commit -qm c$i; sleep PAUSE; done; told'
# commits COUNT PAUSE prints what makes so many commits, c1 to cCOUNT.
commits() { printf %s "$commits" | sed "s/COUNT/$1/; s/PAUSE/$2/"; }
# meanwhile TEXT has the agent at work in the background.
meanwhile() {
	inside "$1" &
	agent=$!
}

E1() {
	tries 'two daemons: two starts at once'
	no_plain 'there is no daemon' && return
	fresh : || return
	local i
	for i in 1 2 3; do git airlock start >"$said.$i" 2>&1 & done
	wait
	attack "$(commits 5 0.05)"
	each_once 5
	expected 'one daemon'
	await 5000 one_daemon || surprised 'there is not one daemon'
}
# A child of the daemon has its name until it executes git.
one_daemon() { [ "$(pgrep -u "$(id -u)" -f 'git-airlock daemon' | while read -r pid; do readlink "/proc/$pid/cwd"; done | grep -c -x -F -e "$outer")" = 1 ]; }

E2() {
	tries "the id of another process in the daemon's lock"
	no_plain 'there is no daemon' && return
	fresh : || return
	sleep 300 &
	local other=$!
	echo "$other" >".git/airlock/$airlock/daemon.lock"
	timeout "$hang" git airlock stop >"$said" 2>&1 || surprised "stop: $(tail -n 1 "$said")"
	timeout "$hang" git airlock clear --discard-pending >"$said" 2>&1 || surprised "clear: $(tail -n 1 "$said")"
	staged=''
	expected 'that process lives'
	if kill -0 "$other" 2>/dev/null; then seen 'it does'; else surprised 'it was killed'; fi
	kill "$other" 2>/dev/null
}

E3() {
	tries 'a daemon that is killed again and again while it lands'
	if [ -n "$proving" ]; then
		attack "$(commits 3 0)"
		plainly 'printf "#!/bin/sh\nkill -9 \$PPID\n" >.git/hooks/post-applypatch; chmod +x .git/hooks/post-applypatch; mailed' '[ -d .git/rebase-apply ]'
		return
	fi
	fresh : || return
	before=$(outside)
	begun_at=$(now)
	meanwhile "$(commits 30 0.1)"
	local i
	for i in 1 2 3 4 5 6 7 8; do
		sleep 0.3
		kill -9 "$(daemon)" 2>/dev/null
		git airlock status >"$said" 2>&1
	done
	wait "$agent" || surprised 'the agent was disturbed'
	git airlock promote >"$said" 2>&1 || surprised "promote: $(tail -n 1 "$said")"
	each_once 30
	user_looks
	[ -z "$(git status --porcelain)" ] || surprised "git status: $(git status --porcelain | head -n 1)"
}

E4() {
	tries 'a promote that is killed at any moment'
	no_plain 'as E3' && return
	fresh 'git config airlock.autoLand false' || return
	local i
	for i in 1 2 3 4 5 6 7 8 9 10; do
		attack "echo $i >>n; git add n; git commit -qm c$i; told"
		git airlock promote >"$said" 2>&1 &
		sleep "0.0$((i % 5 * 2))"
		kill -9 $! 2>/dev/null
		wait $! 2>/dev/null
		sound || surprised 'git fsck complains'
	done
	git airlock promote >"$said" 2>&1 || surprised "promote: $(tail -n 1 "$said")"
	each_once 10
	[ -z "$(git status --porcelain)" ] || surprised "git status: $(git status --porcelain | head -n 1)"
}

E6() {
	tries 'a full disk'
	no_plain 'am leaves half a batch, as in E3' && return
	fresh small_disk || return
	[ -z "$why_not" ] || return
	attack work
	lands
	# The watchdog would stop the prison for less.
	dd if=/dev/zero of="$outer/.git/filler" bs=64k 2>/dev/null
	inside 'work' || :
	git airlock promote >"$said" 2>&1
	expected 'nothing breaks, and the commit lands when there is room'
	rm -f "$outer/.git/filler"
	git airlock start >"$said" 2>&1
	attack work
	lands
	sound || surprised 'git fsck complains'
}

E7() {
	tries 'times of files and commits in the past and in the future'
	no_plain 'nothing goes by times' && return
	fresh : || return
	touch -d 2099-01-01 .git/index README .git/refs/heads/* .git
	attack 'touch -d 1980-01-01 .git .git/refs/heads .git/refs/heads/main; GIT_COMMITTER_DATE="@99 +0000" git commit -q --allow-empty -m old; touch -d 2090-01-01 .git/refs/heads; work; touch -d 1980-01-01 .git/refs/heads .git/refs/heads/main'
	lands
	touch -d 1999-01-01 .git/index .git/HEAD
	attack work
	lands
}

E8() {
	tries "the user's index.lock"
	[ -z "$proving" ] || attack work
	plainly 'touch .git/index.lock; git fetch -q $plain main; git merge -q --allow-unrelated-histories FETCH_HEAD' '[ "$status" != 0 ]' && return
	touch .git/index.lock
	brief=1
	attack work
	held index-locked
	[ -e .git/index.lock ] || surprised 'the lock was removed'
	rm .git/index.lock
	lands
}

E9() {
	tries 'the user and the agent commit at the same time'
	if [ -n "$proving" ]; then
		attack work
		plainly 'git fetch -q $plain main; old=$(git rev-parse main); git commit -q --allow-empty -m users; git update-ref refs/heads/main FETCH_HEAD' '! git log --format=%s main -- | has users'
		return
	fi
	fresh : || return
	meanwhile "$(commits 15 0.1)"
	local i
	for i in $(seq 15); do
		echo "$i" >>mine
		until git add mine 2>/dev/null && git commit -qm "u$i" 2>/dev/null; do sleep 0.05; done
	done
	wait "$agent"
	each_once 15
	expected "and no commit of the user is lost"
	[ "$(subjects | grep -c '^u[0-9]')" = 15 ] || surprised "of the user's: $(subjects | grep -c '^u[0-9]')"
	await 5000 clean_status || surprised "git status: $(git status --porcelain | head -n 1)"
}
clean_status() { [ -z "$(git status --porcelain)" ]; }

E10() {
	tries 'the user amends, and resets'
	fresh : || return
	attack work
	plainly 'git commit -q --allow-empty -m users; git fetch -q $plain main; git reset -q --hard FETCH_HEAD' '! git log --format=%s main -- | has users' && return
	lands
	git commit -q --amend -m 'amended by the user'
	attack 'echo more >>more; git add more; git commit -qm more; told'
	lands
	[ "$(git log -1 --format=%s main~1)" = 'amended by the user' ] || surprised 'what the user amended is gone'
	git commit -q --allow-empty -m throwaway
	git reset -q --hard HEAD~1
	attack 'echo more >>more; git commit -qam again; told'
	lands
}

E11() {
	tries 'the branch is renamed, and deleted'
	fresh : || return
	attack work
	plainly 'old=$(git rev-parse main); git branch -m other; git fetch -q $plain main; git update-ref refs/heads/main FETCH_HEAD' 'git rev-parse -q --verify refs/heads/main' && return
	lands
	git branch -m other
	attack 'echo more >>more; git add more; git commit -qm more; told'
	expected 'held, and the branch is not created again'
	if await 5000 held_by 'branch-deleted|branch-switched'; then seen "$(hold)"; else surprised "not held: $(hold)"; fi
	! git rev-parse -q --verify refs/heads/main >/dev/null || surprised 'the old name is there again'
	git branch -m main
	lands
}

E12() {
	tries 'another branch is checked out'
	fresh 'git branch elsewhere' || return
	attack work
	plainly 'git checkout -q elsewhere; mailed' '[ "$(git rev-parse elsewhere)" != "$(git rev-parse main)" ]' && return
	lands
	git checkout -q elsewhere
	attack 'echo more >>more; git add more; git commit -qm more; told'
	held branch-switched
	git checkout -q main
	lands
	[ "$(git rev-parse elsewhere)" = "$(git rev-parse "refs/airlock/$airlock/base")" ] || surprised 'the other branch moved'
}

E13() {
	tries 'HEAD is detached'
	fresh : || return
	attack work
	plainly 'git checkout -q --detach; mailed' '[ "$(git rev-parse main)" != "$(git rev-parse HEAD)" ]' && return
	lands
	git checkout -q --detach
	attack 'echo more >>more; git add more; git commit -qm more; told'
	held detached-head
	git checkout -q main
	lands
	raze
	fresh_stage=1
	outer_repository
	git checkout -q --detach
	expected 'start refuses'
	if git airlock start --backend "$backend" ${image:+--image "$image"} >"$said" 2>&1; then surprised 'it started'; staged=1; else seen "$(head -n 1 "$said")"; fi
}

E14() {
	tries 'another worktree has the branch checked out as well'
	fresh : || return
	attack work
	plainly 'git worktree add -q -f ../r-side main; git fetch -q $plain main; git update-ref refs/heads/main FETCH_HEAD' '[ -n "$(git -C ../r-side status --porcelain)" ]' && return
	lands
	git worktree add -q -f ../r-side main
	attack 'echo more >>more; git add more; git commit -qm more; told'
	held branch-switched
	[ -z "$(git -C ../r-side status --porcelain)" ] || surprised 'the other worktree is behind'
	git worktree remove ../r-side
	lands
}

E15() {
	tries 'a merge, an am and a rebase of the user in progress'
	fresh 'git switch -qc theirs; echo theirs >README; git commit -qam theirs; git switch -q main; echo ours >README; git commit -qam ours' || return
	attack work
	plainly 'git format-patch -q --stdout main..theirs >m; git am -q -3 m; echo resolved >README; mailed || git am --abort' '[ "$(cat README)" != resolved ]' && return
	lands
	local operation abort
	git format-patch -q --stdout main..theirs >"$work/mail"
	for operation in 'merge theirs' "am -q -3 $work/mail" 'rebase theirs'; do
		# shellcheck disable=SC2086
		git $operation >"$said" 2>&1 && surprised "no conflict: $operation"
		echo resolved >README
		abort="git ${operation%% *} --abort"
		brief=1
		attack "echo '$operation' >>more; git add more; git commit -qm more; told"
		held operation-in-progress
		[ "$(cat README)" = resolved ] || surprised "the user's resolution is gone"
		$abort >"$said" 2>&1
		lands
	done
}

E16() {
	tries 'a file that the user has changed'
	fresh : || return
	attack 'echo agent >>README; git commit -qam agent; told'
	plainly 'echo mine >>README; git fetch -q $plain main; git read-tree --reset -u FETCH_HEAD' '! grep -q mine README' && return
	lands
	echo mine >>README
	attack 'echo agent >>README; git commit -qam agent; told'
	held collision README
	grep -q mine README || surprised "the user's change is gone"
	git checkout -q README
	lands
}

E17() {
	tries 'a different file that the user has staged'
	fresh : || return
	attack work
	plainly 'echo x >mine; git add mine; mailed' '[ "$status" != 0 ]' && return
	lands
	echo mine >mine
	git add mine
	attack 'echo more >>more; git add more; git commit -qm more; told'
	lands
	expected 'it stays staged'
	if [ "$(git diff --cached --name-only)" = mine ]; then seen 'it does'; else surprised "staged: $(git diff --cached --name-only | head -n 3)"; fi
	git reset -q mine
}

E18() {
	tries "the user's hooks"
	fresh 'for h in pre-commit post-commit post-checkout post-merge reference-transaction post-index-change applypatch-msg pre-applypatch post-applypatch; do
		printf "#!/bin/sh\ntouch %s\n" "$canary" >.git/hooks/$h; chmod +x .git/hooks/$h; done' || return
	rm -f "$canary"
	attack work
	plainly mailed && return
	brief=1
	lands
}

E19() {
	tries 'a sparse checkout'
	fresh 'git sparse-checkout set docs' || return
	attack 'echo x >tools/new; mkdir -p docs; echo x >docs/new; git add -A; git commit -qm both; told'
	no_plain 'plain git knows them' && return
	lands
	expected 'no file outside of the checkout'
	if [ -e docs/new ] && [ ! -e tools/new ] && clean_status; then seen 'none'; else surprised "$(git status --porcelain | head -n 1) $(ls tools 2>/dev/null)"; fi
}

E20() {
	tries 'a shallow clone'
	no_plain 'plain git knows them' && return
	fresh 'git commit -q --allow-empty -m second; git clone -q --depth 1 "file://$outer" "$outer.clone"; outer=$outer.clone; cd "$outer"; echo "the user says" >.env' || return
	attack work
	lands
	sound || surprised 'git fsck complains'
}

E21() {
	tries 'a partial clone whose remote is gone'
	no_plain 'plain git knows them' && return
	fresh 'git config uploadpack.allowFilter true; git clone -q --filter=blob:none "file://$outer" "$outer.clone"; mv "$outer" "$outer.gone"; outer=$outer.clone; cd "$outer"; echo "the user says" >.env' || return
	attack work
	lands
}

E22() {
	tries 'a repository with SHA-256'
	fresh : --object-format=sha256 || return
	attack work
	no_plain 'plain git knows them' && return
	lands
}

E23() {
	tries 'a repository with reftable refs'
	no_plain 'plain git knows them' && return
	if ! git init -q --ref-format=reftable "$work/r-table" 2>/dev/null; then untriable - "$(git --version) has none" && return; fi
	fresh : --ref-format=reftable || return
	attack work
	lands
}

E24() {
	tries 'a bare repository'
	no_plain 'there is nothing to fall for' && return
	fresh_stage=1
	git init -q --bare "$work/r-bare"
	expected 'refused, and nothing is created'
	(cd "$work/r-bare" && git airlock start) >"$said" 2>&1 && surprised 'it started'
	if [ -e "$work/r-bare/airlock" ]; then surprised 'something was made'; else seen "$(head -n 1 "$said")"; fi
}

E25() {
	tries 'autocrlf, ident, filters: does the snapshot equal the tree?'
	fresh 'git config core.autocrlf true; printf "*.id ident\n*.f filter=up\n* text=auto\n" >.gitattributes; git config filter.up.smudge "tr a-z A-Z"; git config filter.up.clean "tr A-Z a-z"
		printf "\$Id\$\n" >a.id; echo abc >a.f; printf "a\nb\n" >lines; git add -A 2>/dev/null; git commit -qm filters' || return
	attack 'git rev-parse "HEAD^{tree}"'
	plainly 'mkdir ../r-copy; cp -r . ../r-copy/w; rm -rf ../r-copy/w/.git; cd ../r-copy/w; rm -rf .plain-0000 a.f; printf ABC >a.f; git init -q; git add -A' \
		'[ "$(git -C ../r-copy/w write-tree)" != "$(git rev-parse "main^{tree}")" ]' && return
	expected 'it does'
	if [ "$(head -n 1 "$work/agent.out")" = "$(git rev-parse 'main^{tree}')" ]; then seen 'it is'; else surprised 'it is not'; fi
	attack 'printf "c\n" >>lines; echo def >>a.f; git add -A; git commit -qm more; told'
	lands
	clean_status || surprised "git status: $(git status --porcelain | head -n 1)"
}

E26() {
	tries 'a submodule of the user is removed, and moved'
	no_plain 'as B20' && return
	fresh 'git init -q "$work/r-sub"; git -C "$work/r-sub" commit -q --allow-empty -m sub; git -c protocol.file.allow=always submodule add -q "$work/r-sub" sub; git commit -qm sub' || return
	attack 'git rm -q --cached sub; git commit -qm removed; told'
	held policy submodule
	restored
	attack 'git update-index --cacheinfo "160000,$(git rev-parse main),sub"; git commit -qm moved; told'
	held policy submodule
	mends
}

E27() {
	tries 'GIT_DIR, GIT_INDEX_FILE, GIT_TRACE and others in the environment'
	no_plain 'it is there that git obeys them' && return
	git init -q "$work/r-other"
	local set
	expected 'each is obeyed or refused, and no other repository changes'
	before=$(outside)
	for set in "GIT_DIR=$work/r-other/.git" "GIT_INDEX_FILE=$work/r-index" "GIT_OBJECT_DIRECTORY=$work/r-objects" "GIT_TRACE=$work/r-trace" "GIT_TRACE2_EVENT=$work/r-trace2" \
		"GIT_WORK_TREE=$work/r-other" "GIT_NAMESPACE=x" "GIT_EXTERNAL_DIFF=touch $canary" "GIT_SSH_COMMAND=touch $canary" "GIT_EDITOR=touch $canary" "GIT_PAGER=touch $canary" "PAGER=touch $canary" "LANG=tr_TR.UTF-8" "LC_ALL=xx"; do
		attack work
		env "$set" timeout "$hang" git airlock promote >"$said" 2>&1
		case $? in 0 | 1) ;; *) surprised "with ${set%%=*}: $(tail -n 1 "$said")" ;; esac
		env "$set" timeout "$hang" git airlock status >"$said" 2>&1
		brief=1
		lands
	done
	[ -z "$(find "$work/r-other/.git" -name 'airlock')" ] || surprised 'something was made elsewhere'
	if [ -e "$work/r-index" ] || [ -e "$work/r-objects" ]; then surprised 'something was written elsewhere'; fi
}

E28() {
	tries "/dev/null as git's configuration"
	no_plain 'it would replace /dev/null' && return
	fresh : || return
	GIT_CONFIG_GLOBAL=/dev/null git -c user.name=U -c user.email=u@x airlock promote >"$said" 2>&1
	GIT_CONFIG_GLOBAL=/dev/null git -c user.name=U -c user.email=u@x airlock init --show-notes >>"$said" 2>&1 </dev/null
	expected 'it stays a device'
	if [ "$(stat -c '%F %t:%T' /dev/null)" = 'character special file 1:3' ]; then seen 'it does'; else surprised "$(stat -c %F /dev/null)"; fi
}

E29() {
	tries "the user's git clean -ffdx, git stash -a, git add -A -f"
	no_plain 'it is plain git that does it' && return
	fresh : || return
	attack work
	lands
	echo x >mine
	git stash push -q --all >"$said" 2>&1
	git stash drop -q 2>/dev/null
	git reset -q --hard
	rm -f mine
	echo 'the user says' >.env
	git add -A -f >"$said" 2>&1
	git airlock status >"$said" 2>&1
	if git ls-files -s | has ^160000; then grep -q 'added to the index' "$said" || surprised 'status does not warn of git add'; fi
	git reset -q
	hygienic "$said"
	[ -d "$workspace" ] || git airlock start >"$said" 2>&1
	attack 'echo more >>more; git add more; git commit -qm more; told'
	lands
	git clean -q -ffdx -e .env >"$said" 2>&1
	if [ ! -d "$workspace" ]; then
		git airlock status >"$said" 2>&1
		expected 'status says what happened, start rebuilds it'
		grep -q 'is gone' "$said" || surprised "status says: $(cat "$said")"
		git airlock start >"$said" 2>&1 || surprised "start: $(tail -n 1 "$said")"
		inside 'test -e more && cp -a .git /tmp/good' || surprised 'what the agent had committed is gone'
	fi
	attack 'echo again >>more; git commit -qam again; told'
	lands
}

E30() {
	tries 'git gc --prune=now, rewritten notes, refs/airlock pushed'
	no_plain 'it is plain git that does it' && return
	fresh : || return
	attack work
	lands
	git config airlock.autoLand false
	brief=1
	attack 'echo more >>more; git add more; git commit -qm more; told'
	held review
	git gc -q --prune=now
	git init -q --bare "$work/r-remote"
	git push -q "$work/r-remote" 'refs/*:refs/*' 2>"$said"
	git notes --ref=airlock add -f -m 'rewritten by the user' HEAD 2>"$said"
	git config --unset airlock.autoLand
	lands
	sound || surprised 'git fsck complains'
}

E31() {
	tries 'the user empties .git/info/exclude'
	no_plain 'it is plain git that does it' && return
	fresh : || return
	: >.git/info/exclude
	git airlock start >"$said" 2>&1
	expected 'start lists the workspace again'
	if grep -q -F -e "$workspace" .git/info/exclude; then seen 'it does'; else surprised 'it does not'; fi
	attack work
	lands
	clean_status || surprised "git status: $(git status --porcelain | head -n 1)"
}

E32() {
	tries 'the user resolves a conflict by its hint, and the commit changes their filter'
	fresh 'mkdir -p tools; echo cat >tools/f; echo "*.f filter=f" >.gitattributes; echo 1 >x.f; git add .; git commit -qm tools; git config filter.f.smudge "sh tools/f"; git config filter.f.clean cat' || return
	attack work
	if [ -z "$proving" ]; then lands; fi
	echo ours >README
	git commit -qam ours
	attack 'echo theirs >README; echo "$fire cat" >tools/f; echo 2 >x.f; git add .; git commit -qm theirs; told'
	plainly 'git fetch -q $plain main; git merge -q --no-commit --allow-unrelated-histories -X theirs FETCH_HEAD' && return
	held_somehow 'conflict'
	git airlock promote --resolve >"$said" 2>&1 && surprised 'promote --resolve ended with 0'
	grep -q 'held (policy)' "$said" || surprised "promote --resolve: $(head -n 1 "$said")"
	user_looks
	[ "$(outside)" = "$before" ] || surprised 'something of the user changed'
}
