# A: from the inner repository to git on the host.
# shellcheck shell=bash disable=SC2016,SC2154

A1() {
	tries 'core.fsmonitor names a program'
	attack 'work; git config core.fsmonitor "$fire"'
	plainly 'git -C $plain status' && return
	lands
}

A2() {
	tries 'a hook of every name'
	attack 'work
		for hook in applypatch-msg commit-msg fsmonitor-watchman p4-pre-submit post-applypatch post-checkout post-commit post-index-change \
			post-merge post-rewrite pre-applypatch pre-auto-gc pre-commit pre-merge-commit pre-push pre-rebase prepare-commit-msg \
			proc-receive push-to-checkout reference-transaction sendemail-validate update pre-receive post-receive post-update; do
			payload .git/hooks/$hook
		done'
	plainly 'git -C $plain tag x' && return
	lands
}

A3() {
	tries 'core.hooksPath names a folder of hooks'
	attack 'work; payload hooks/reference-transaction hooks/post-index-change hooks/post-checkout; git config core.hooksPath hooks'
	plainly 'git -C $plain tag x' && return
	lands
}

A4() {
	tries 'filters in info/attributes'
	attack 'work
		git config filter.x.clean "$fire cat"; git config filter.x.smudge "$fire cat"; git config filter.x.process "$fire"
		mkdir -p .git/info; echo "* filter=x" >.git/info/attributes; echo more >>README'
	plainly 'git -C $plain diff' && return
	lands
}

A5() {
	tries 'diff.external and a textconv'
	attack 'work; git config diff.external "$fire"; git config diff.x.textconv "$fire cat"; mkdir -p .git/info; echo "* diff=x" >.git/info/attributes'
	plainly 'git -C $plain log -p -1; git -C $plain show --textconv HEAD:work' && return
	lands
}

A6() {
	tries 'gpg.program, and log.showSignature so that git runs it'
	attack 'work >/dev/null
		payload .git/gpg; git config gpg.program .git/gpg; git config log.showSignature true
		next=$(git cat-file commit main | sed "/^committer/a gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----" | git hash-object -t commit -w --stdin)
		published'
	plainly 'git -C $plain log -1' && return
	lands
}

A7() {
	tries 'a promisor remote, from which git fetches a missing object'
	attack 'prepared; rm -f "$(file_of :work)"
		git config core.repositoryFormatVersion 1; git config extensions.partialClone origin
		git config remote.origin.url .; git config remote.origin.promisor true; git config remote.origin.uploadpack "$fire false"; published'
	plainly 'git -C $plain cat-file -p HEAD:work' && return
	held inner-invalid
	mends
}

A8() {
	tries 'aliases, pagers, editors, askpass, credential and ssh commands'
	attack 'work
		for key in alias.status alias.log; do git config "$key" "!$fire"; done
		for key in core.pager pager.log pager.diff core.editor sequence.editor core.askPass core.sshCommand credential.helper \
			interactive.diffFilter gpg.ssh.program browser.x.cmd difftool.x.cmd mergetool.x.cmd merge.x.driver uploadpack.packObjectsHook \
			receive.procReceiveRefs trailer.x.command sendemail.smtpServer; do git config "$key" "$fire"; done
		git config trailer.sign.command "$fire"; git config trailer.sign.ifmissing add'
	plainly 'git -C $plain commit --allow-empty' && return
	lands
}

A9() {
	tries 'include.path to a file of the host'
	attack 'work; git config include.path "$secret_file"'
	plainly 'git -C $plain status' 'grep -q "$secret" "$said"' && return
	lands
}

A10() {
	tries 'uploadpack.packObjectsHook'
	no_plain 'git obeys that key in protected configuration alone' && return
	attack 'work; git config uploadpack.packObjectsHook "$fire"'
	lands
}

A11() {
	tries 'core.alternateRefsCommand'
	attack 'work; git init -q --bare .git/other; mkdir -p .git/objects/info; echo ../other/objects >.git/objects/info/alternates
		git config core.alternateRefsCommand "$fire"'
	plainly 'git -C $plain fetch -q "$PWD"' && return
	lands
}

A12() {
	tries '.git is a file that leads to the outer repository'
	attack 'mv .git $scratch/moved-$$; echo "gitdir: $outer/.git" >.git'
	plainly 'git -C $plain commit -q --allow-empty -m x' '[ "$(git log -1 --format=%s)" = x ]' && return
	held inner-invalid
	mends
}

A13() {
	tries '.git is a link to the outer repository'
	attack 'mv .git $scratch/moved-$$; ln -s "$outer/.git" .git'
	plainly 'git -C $plain commit -q --allow-empty -m x' '[ "$(git log -1 --format=%s)" = x ]' && return
	held inner-invalid
	mends
}

A14() {
	tries '.git is removed, so that git finds the outer repository'
	attack 'mv .git $scratch/moved-$$'
	plainly 'git -C $plain commit -q --allow-empty -m x' '[ "$(git log -1 --format=%s)" = x ]' && return
	held inner-invalid
	mends
}

A15() {
	tries 'core.worktree is the outer work tree'
	attack 'work; git config core.worktree "$outer"'
	plainly 'echo mine >README; git -C $plain reset -q --hard' '[ "$(cat README)" != mine ]' && return
	lands
}

A16() {
	tries '.git/commondir leads to the outer repository'
	attack 'echo "$outer/.git" >.git/commondir'
	plainly 'git ls-remote $plain' 'grep -q refs/heads/private "$said"' && return
	held inner-invalid
	mends
}

A17() {
	tries 'a commit names a private blob of the host by its id, with alternates to the outer objects'
	attack 'mkdir -p .git/objects/info; echo "$outer/.git/objects" >.git/objects/info/alternates
		git update-index --add --cacheinfo "100644,$private,private"
		git update-ref refs/heads/main "$(git commit-tree -m private -p HEAD "$(git write-tree --missing-ok)")"'
	plainly 'git clone -q --no-local -n $plain $plain.taken' 'git -C "$plain.taken" show HEAD:private | has "$secret"' && return
	held inner-invalid "$private"
	mends
}

A18() {
	local name
	tries 'a FIFO as HEAD, config and a ref'
	for name in HEAD config refs/heads/main; do
		attack "rm -f .git/$name; mkfifo .git/$name"
		plainly 'timeout 2 git -C $plain log -1' '[ "$status" = 124 ]' && return
		held inner-invalid
		mends
	done
}

A19() {
	tries 'refs that are links to a file of the host or an endless device'
	attack 'ln -sf "$secret_file" .git/refs/heads/main; ln -sf "$secret_file" .git/HEAD; ln -s /dev/zero .git/packed-refs'
	plainly 'head -c 99 $plain/.git/refs/heads/main' 'grep -q "$secret" "$said"' && return
	held inner-invalid
	mends
}

A20() {
	tries 'a socket, a FIFO and a link to a device in the work tree, no device by mknod'
	attack 'perl -MIO::Socket::UNIX -e "IO::Socket::UNIX->new(Local => q(socket), Listen => 1) or die"
		mkfifo fifo; ln -s /dev/zero zero; work; ! mknod device c 1 3 2>/dev/null || test -e "$outer"'
	plainly 'timeout 2 cat $plain/*' '[ "$status" = 124 ]' && return
	lands
	{ git airlock stop && git airlock start; } 2>"$said" || surprised "stop and start: $(tail -n 1 "$said")"
	inside 'cp -a .git /tmp/good'
}

A21() {
	tries 'a file of 300 MB of zeros, which takes 0.3 MB'
	attack 'truncate -s 300M zeros; git add zeros; git commit -qm zeros; told'
	plainly 'git fetch -q --no-auto-gc $plain main; git merge -q --allow-unrelated-histories FETCH_HEAD' '[ "$(stat -c %s zeros)" = 314572800 ]' && return
	held policy large-file
	bounded
	mends
}

A22() {
	tries 'a tree of 10^10 paths in a kilobyte'
	attack 't=$(printf "100644 blob %s\tf\n" "$(blob)" | git mktree)
		for level in 1 2 3 4 5 6 7 8 9 10; do t=$(for n in 0 1 2 3 4 5 6 7 8 9; do printf "040000 tree %s\t%s\n" "$t" "$n"; done | git mktree); done
		becomes "$t"'
	plainly 'git fetch -q $plain main; ulimit -v 2000000; timeout 3 git read-tree FETCH_HEAD' '[ "$status" != 0 ]' && return
	held inner-invalid
	bounded
	mends
}

A23() {
	tries 'a commit message of 100 MB'
	attack 'perl -e "print q(m) x 100000000" | git commit -q --allow-empty -F -; told'
	plainly 'git fetch -q $plain main; git log -1 FETCH_HEAD' '[ "$(stat -c %s "$said")" -gt 100000000 ]' && return
	held inner-invalid airlock.limit.commit
	bounded
	mends
}

A24() {
	tries '100,000 refs'
	attack 'tip=$(git rev-parse main)
		{ echo "# pack-refs with: peeled fully-peeled sorted"; perl -e "\$tip = shift; printf qq(%s refs/heads/r%06d\n), \$tip, \$_ for 1..100000" "$tip"; } >.git/packed-refs
		work'
	plainly 'git ls-remote $plain' '[ "$(wc -l <"$said")" -gt 100000 ]' && return
	lands 2000
}

A25() {
	tries 'a tree 1,000 deep; a path of 5,000 bytes; a component of 300'
	attack 't=$(printf "100644 blob %s\tf\n" "$(blob)" | git mktree)
		level=0; while [ $level -lt 1000 ]; do level=$((level + 1)); t=$(printf "040000 tree %s\td\n" "$t" | git mktree); done
		becomes "$t"'
	plainly 'git fetch -q $plain main; git merge -q --allow-unrelated-histories FETCH_HEAD; find . -depth -name f' '[ "$(find . -path "*/d/d/d/d/f" | wc -l)" = 1 ]' && return
	held inner-invalid airlock.limit.depth
	mends
	attack 't=$(printf "100644 blob %s\tf\n" "$(blob)" | git mktree)
		for level in $(seq 25); do t=$(printf "040000 tree %s\t%0200d\n" "$t" 7 | git mktree); done; becomes "$t"'
	held inner-invalid airlock.limit.path
	mends
	attack 'becomes "$(printf "100644 blob %s\t%0300d\n" "$(blob)" 7 | git mktree)"'
	held inner-invalid airlock.limit.component
	mends
}

# malformed is a commit whose text is changed by a sed script.
malformed() {
	attack "next=\$(git cat-file commit main | sed '$1' | git hash-object -t commit -w --stdin --literally); published"
}

A26() {
	local change
	tries 'commits without an author, with a date that overflows, with a tree that is a blob'
	malformed '/^author/d'
	plainly 'git fetch -q $plain main' 'git cat-file -e FETCH_HEAD' && return
	held inner-invalid
	mends
	for change in 's/^\(author .*> \).*/\199999999999999999999 +0000/' "s/^tree .*/tree $private/" 1d 's/^author /author <</'; do
		malformed "$change"
		held inner-invalid
		mends
	done
}

A27() {
	local at
	tries 'object and pack files with wrong bytes'
	no_plain 'the parsers of libraries are meant; none reads these files here' && return
	for at in 0 1 20 60; do
		attack "prepared; for f in \$(file_of \$next) \$(file_of \$next^{tree}) \$(file_of :work); do
			chmod u+w \$f; printf '\\377\\377' | dd of=\$f bs=1 seek=$at conv=notrunc 2>/dev/null; done; published"
		held inner-invalid
		mends
	done
	attack 'prepared; git tag x $next; git repack -adq; git tag -d x >/dev/null
		for f in .git/objects/pack/*.pack; do chmod u+w "$f"; printf "\377\377\377" | dd of="$f" bs=1 seek=60 conv=notrunc 2>/dev/null; done; published'
	held inner-invalid
	mends
	attack 'prepared; git tag x $next; git repack -adq; git tag -d x >/dev/null
		for f in .git/objects/pack/*.idx; do chmod u+w "$f"; head -c 1100 /dev/zero | tr "\0" "\377" >"$f"; done; published'
	held inner-invalid
	mends
}

A28() {
	tries 'a replace ref shows another commit than the real one'
	attack 'echo evil >evil; git add evil; prepared
		git replace $next "$(git commit-tree -m benign -p main main^{tree})"; published
		echo "tree $(git --no-replace-objects rev-parse $next^{tree})"'
	plainly 'git -C $plain log -1 --format=%s' 'grep -q benign "$said"' && return
	lands
	[ -e evil ] || surprised 'what landed is not what was committed'
}

A29() {
	tries '.git/shallow and info/grafts cut the history'
	attack 'prepared; echo $next >.git/shallow; published'
	plainly 'git -C $plain log --oneline' '[ "$(wc -l <"$said")" = 1 ]' && return
	lands
	attack 'prepared; next=$(git cat-file commit $next | sed "s/^parent .*/parent 1234567890123456789012345678901234567890/" | git hash-object -t commit -w --stdin)
		echo $next >.git/shallow; published'
	held inner-invalid 12345678901234567890
	mends
	attack 'prepared; mkdir -p .git/info; echo $next >.git/info/grafts; published'
	lands
}

A30() {
	tries 'landed commits are amended, reset and rebased'
	attack work
	plainly 'naive() { git fetch -q $plain main && git branch -f naive FETCH_HEAD; }
		naive; git branch kept naive; git -C $plain commit -q --amend --allow-empty -m other; naive' '! git merge-base --is-ancestor kept naive' && return
	lands
	local kept
	kept=$(git rev-parse main)
	attack 'echo amended >>work; git commit -q --amend -am amended; told'
	lands
	attack 'git reset -q --hard HEAD~1; git commit -q --allow-empty -m reset; told'
	lands
	git merge-base --is-ancestor "$kept" main || surprised 'the outer branch was rewritten'
}

A31() {
	tries 'an object that is stored under the name of another object'
	no_plain 'git checks the name when it takes objects in' && return
	attack 'prepared; blob other >/dev/null; f=$(file_of :work); chmod u+w "$f"
		cat "$(file_of "$(blob other)")" >"$f"; published'
	held inner-invalid
	mends
}

waits_on() { git airlock status --json | has "\"ref\": \"refs/heads/$1\""; }

A32() {
	tries 'another branch is checked out inside, HEAD is detached, main is gone'
	no_plain 'there is nothing to fall for' && return
	attack 'git switch -q -c side; echo x >side; git add side; git commit -qm side; git checkout -q --detach'
	if await 5000 waits_on side; then seen 'the other branch is shown as waiting'; else surprised 'the other branch is not shown'; fi
	expected 'only main lands'
	user_looks
	attack 'git branch -q -D main'
	held inner-main refs/heads/side
	mends
}

A33() {
	tries 'an export that blocks: a FIFO as the index of a pack, as alternates, as a loose object'
	attack 'prepared; pack=.git/objects/pack/pack-1111111111111111111111111111111111111111
		echo >$pack.pack; mkfifo $pack.idx; echo $next >.git/refs/heads/main'
	plainly 'timeout 2 git -C $plain cat-file -p 1234567890123456789012345678901234567890' '[ "$status" = 124 ]' && return
	held inner-invalid
	mends
	attack 'prepared; mkdir -p .git/objects/info; mkfifo .git/objects/info/alternates; echo $next >.git/refs/heads/main'
	held inner-invalid
	mends
	attack 'prepared; f=$(file_of $next); rm -f "$f"; mkfifo "$f"; echo $next >.git/refs/heads/main'
	held inner-invalid
	mends
}

A34() {
	tries "escape sequences and bidirectional text in git's messages about the inner repository"
	attack 'git config core.abbrev "$(printf "\033[31mred\342\200\256der\302\233")"'
	plainly 'git -C $plain status' 'grep -q "$(printf "\342\200\256")" "$said"' && return
	held inner-invalid
	mends
}

A35() {
	tries 'an extension and a repository format that git does not support'
	attack 'git config core.repositoryFormatVersion 1; git config extensions.nobody true'
	plainly 'git -C $plain status' '[ "$status" = 128 ]' && return
	held inner-invalid
	mends
}

A36() {
	tries "the user's tools work in the workspace"
	attack 'work; git config core.fsmonitor "$fire"; payload .git/hooks/post-index-change'
	plainly 'cd $plain && git status' && return
	lands
	expected 'git refuses to'
	if (cd "$outer" && git -C "$workspace" status) >"$said" 2>&1; then surprised 'git works in the workspace'; else seen "$(head -n 1 "$said" | cut -c1-60)"; fi
}

A37() {
	tries 'a submodule at the path of the workspace'
	attack 'git config core.fsmonitor "$fire"; git update-index --add --cacheinfo "160000,$(git rev-parse main),$workspace"
		git -c core.fsmonitor= commit -qm submodule; told'
	plainly 'git update-index --add --cacheinfo "160000,$(git -C $plain -c core.fsmonitor= rev-parse HEAD),$(basename $plain)"; git status' && return
	held inner-invalid 'is a submodule in a workspace'
	mends
}

A38() {
	tries "objects that are the same files as the user's objects"
	if [ -n "$proving" ]; then
		plainly 'git clone -q . $plain.clone' '[ -n "$(find "$plain.clone/.git/objects" -type f -links +1)" ]'
		return
	fi
	attack 'find .git -type f -links +1; work'
	expected 'no link to any'
	! grep '^\.git/' "$work/agent.out" >"$said" || surprised "shared: $(head -n 1 "$said")"
	lands
}
