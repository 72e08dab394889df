# B: histories and messages that change when they are sent as mail.
# shellcheck shell=bash disable=SC2016,SC2154

# with_message MESSAGE makes the agent commit with that message, in printf(1) notation. Mail cannot carry the message.
with_message() {
	attack "echo \$id >>work; git add work; printf '$1' | git commit -q --cleanup=verbatim --allow-empty-message -F -; told"
}
# mail_changes_it is for --prove: it sends the commit by format-patch and am, with am's defaults, and message or tree must change.
mail_changes_it() { ! { [ "$status" = 0 ] && is_landed && [ "$(message_of main)" = "$message" ]; }; }
mailed() { plainly 'mailed' mail_changes_it; }

B1() {
	tries 'a diff in the message'
	with_message 'subject\n\ndiff --git a/planted b/planted\nnew file mode 100644\n--- /dev/null\n+++ b/planted\n@@ -0,0 +1 @@\n+planted\n'
	plainly mailed '[ -e planted ]' && return
	lands
	[ ! -e planted ] || surprised 'the diff in the message was applied'
}

B2() { tries 'a line of dashes in the message' && with_message 'subject\n\nbefore\n---\nafter\n' && { mailed || lands; }; }
B3() { tries 'Index: in the message' && with_message 'subject\n\nbefore\nIndex: x\nafter\n' && { mailed || lands; }; }

B4() {
	tries 'From: and Date: in the message'
	with_message 'subject\n\nFrom: Linus <torvalds@example.org>\nDate: Thu, 1 Jan 1970 00:00:01 +0000\n\ntext\n'
	plainly mailed 'git log -1 --format=%an | has Linus' && return
	lands
}

B5() { tries 'a line that begins a mail in the message' && with_message 'subject\n\nFrom 1234567890123456789012345678901234567890 Mon Sep 17 00:00:00 2001\ntext\n' && { mailed || lands; }; }
B6() { tries 'a tag in brackets in the subject' && with_message '[security] fix\n' && { mailed || lands; }; }

B7() {
	tries "scissors in the message, and the user's mailinfo.scissors"
	git config --global mailinfo.scissors true
	with_message 'subject\n\nbefore\n-- >8 --\nafter\n'
	mailed || lands
	git config --global --unset mailinfo.scissors
}

B8() { tries 'line ends of DOS in the message' && with_message 'subject\r\n\r\ntext\r\n' && { mailed || lands; }; }

B9() {
	tries 'CRLF line ends in a file'
	attack 'printf "a\r\nb\r\n" >dos; git add dos; git commit -qm dos; printf "a\r\nc\n" >dos; git commit -qam edited; told'
	mailed || lands
}

B10() { tries 'empty lines around the message, spaces at ends' && with_message '\n\n  subject  \n\n\ntext  \n\n\n' && { mailed || lands; }; }

B11() {
	tries 'a message that is not UTF-8, and one with an encoding header'
	attack 'echo x >>work; git add work; printf "gr\374n\n" | git -c i18n.commitEncoding=ISO-8859-1 commit -q -F -; told'
	mailed && return
	lands
	git cat-file commit main | has -x 'encoding ISO-8859-1' || surprised 'the encoding is lost'
	with_message 'sub\345ject\n\n\377\376\n'
	lands
}

B12() {
	tries 'a NUL in the message'
	attack 'next=$({ git cat-file commit main; printf "a\0b\n"; } | git hash-object -t commit -w --stdin --literally); published'
	plainly 'git fetch -q $plain main' 'git cat-file commit FETCH_HEAD | tr "\\0" @ | has a@b' && return
	held inner-invalid "$next"
	mends
}

B13() {
	tries 'no message at all'
	no_plain 'mail carries it' && return
	with_message ''
	lands
}

B14() {
	tries 'an empty commit, and a commit after it'
	attack 'git commit -q --allow-empty -m empty; work'
	plainly mailed '! git log --format=%s | has -x empty' && return
	lands
	[ "$(git log -1 --format=%s main~1)" = empty ] || surprised 'the empty commit is lost'
}

B15() {
	tries 'a merge whose result is in neither parent'
	attack 'git switch -qc side; echo x >side; git add side; git commit -qm side; git switch -q main; echo y >ours; git add ours; git commit -qm ours
		git merge -q --no-commit side; echo evil >evil; git add evil; git commit -qm merge; git branch -qD side; told'
	plainly mailed '[ ! -e evil ]' && return
	lands
	[ "$(git rev-list --parents -n 1 main | wc -w)" = 3 ] || surprised 'it is no merge any more'
	[ "$(cat evil)" = evil ] || surprised 'what the merge added is not there'
}

B16() {
	tries 'an octopus merge, a criss-cross merge, an unrelated history on main'
	attack 'for b in a b c; do git switch -qc $b main; echo $b >$b; git add $b; git commit -qm $b; done; git switch -q main
		git merge -q -m octopus a b c
		git switch -qc x; echo x >x; git add x; git commit -qm x; git switch -q main; echo y >y; git add y; git commit -qm y
		t=$(git rev-parse main); git merge -qm m1 x; git switch -q x; git merge -qm m2 "$t"; echo z >z; git add z; git commit -qm z
		git switch -q main; git merge -qm m3 x; git branch -qD a b c x; told'
	plainly mailed mail_changes_it && return
	lands
	git log --format=%s main | has -x octopus || surprised 'the octopus is lost'
	attack 'git checkout -q --orphan lone; work >/dev/null; git branch -qf main lone; git switch -q main; git branch -qD lone; told'
	lands
	expected 'the outer history stays'
	git merge-base --is-ancestor "$(git rev-parse "refs/airlock/$airlock/base")" main || surprised 'the outer history was replaced'
}

B17() {
	tries 'the first commit of the inner history amended'
	attack 'git commit -q --amend -m "another root" --allow-empty; work'
	plainly 'git fetch -q $plain main; git merge -q FETCH_HEAD' '[ "$status" != 0 ]' && return
	lands
}

B18() {
	tries 'binary files, modes, links, renames'
	attack 'head -c 3000 /dev/urandom >bin; printf "\0\1\2" >zeros; ln -s README link; git mv docs/text docs/renamed; chmod +x README; git add -A; git commit -qm all; told'
	plainly 'git -C $plain diff HEAD~1 HEAD | git apply --index && git commit -qm x' mail_changes_it && return
	lands
	{ [ -x README ] && [ -L link ] && [ ! -e docs/text ]; } || surprised 'the work tree is not what was committed'
}

B19() {
	tries 'a link and a folder of the same name, to write through the link'
	attack 'f=$(blob x); t=$(raw 100644 planted "$f"); l=$(blob "$(dirname "$canary")")
		both=$(perl -e "print qq(120000 d\0), pack(q(H*), shift), qq(40000 d\0), pack(q(H*), shift)" "$l" "$t" | git hash-object -t tree -w --stdin --literally)
		becomes "$both"'
	plainly 'git fetch -q $plain main' 'git ls-tree FETCH_HEAD | has 120000 && git ls-tree FETCH_HEAD | has 040000' && return
	held inner-invalid "$tree"
	mends
}

B20() {
	tries 'a submodule'
	attack 'git update-index --add --cacheinfo "160000,$(git rev-parse main),sub"; git commit -qm submodule; told'
	plainly mailed 'git ls-files -s | has ^160000' && return
	held policy submodule
	mends
}

B21() {
	tries 'a subject of 100,000 characters, a line of 10 MB'
	no_plain 'mail carries them' && return
	attack 'perl -e "print q(x) x 10000000" >long; git add long; perl -e "print q(s) x 100000" | git commit -q -F -; told'
	lands
}

B22() {
	tries "the agent's name in a commit: author, committer, trailers"
	attack 'echo $id >>work; git add work; git commit -qs -m "$id" -m "text"; told; echo "ghost $(git config user.name)"'
	plainly mailed '[ "$(git log -1 --format=%an)" = Ghost ]' && return
	lands
	local ghost
	ghost=$(sed -n 's/^ghost //p' "$work/agent.out")
	expected 'flagged, and only in the message'
	if git log --format='%an%n%ae%n%cn%n%ce' main | has -F -e "$ghost"; then surprised "$ghost is an author"; fi
	flagged ghost-leak
}

B23() {
	tries 'author dates of 1970 and 2099'
	no_plain 'dates are kept as they are' && return
	attack 'echo 1 >>work; git add work; GIT_AUTHOR_DATE="@1 +0000" git commit -qm past; echo 2 >>work; GIT_AUTHOR_DATE="2099-01-01T00:00:00+1400" git commit -qam future; told'
	lands
	[ "$(git log -2 --format=%ad --date=raw main | tr '\n' ' ')" = '4070858400 +1400 1 +0000 ' ] || surprised 'the dates are others'
	[ "$(git log -1 --format=%ct main)" -le "$(($(date +%s) + 60))" ] || surprised 'the committer date is not now'
}

B24() {
	tries 'commits in the name of the user'
	attack 'git config user.name "Ursula User"; git config user.email ursula@host.example; work'
	plainly mailed '[ "$(git log -1 --format=%an)" = "Ursula User" ]' && return
	lands
	expected 'a note names its origin'
	if git notes --ref=airlock show main | has '^Airlock-Inner-Author: Ursula User'; then seen 'it does'; else surprised 'no note says so'; fi
}

B25() {
	local key
	tries "the user's settings for apply, am, diff and format-patch"
	for key in apply.whitespace=fix diff.noprefix=true diff.mnemonicPrefix=true diff.context=0 format.coverLetter=true format.attach=true am.threeWay=true \
		am.keepcr=true diff.renames=copies core.whitespace=tab-in-indent core.quotePath=false diff.algorithm=patience; do git config --global "${key%%=*}" "${key#*=}"; done
	attack 'printf "a  \n\tb \n\n\n" >spaces; echo x >>README; git add -A; git commit -qm "spaces" -m "text"; told'
	mailed || lands
	for key in apply diff format am core; do git config --global --remove-section "$key"; done
}

B26() {
	tries 'commit.gpgSign, with a program that cannot sign'
	git config --global commit.gpgSign true
	git config --global gpg.program false
	attack '! test -d "$outer" || git config commit.gpgSign false; work'
	plainly mailed '[ "$status" != 0 ]' || lands
	git config --global --remove-section commit
	git config --global --remove-section gpg
}
