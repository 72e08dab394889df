# F: what git reads otherwise than it is written: modes, patterns, attributes.
# shellcheck shell=bash disable=SC2016,SC2034,SC2154

# odd_mode MODE NAME OBJECT has the agent make a good commit, and one whose tree has one more entry, in git's order.
odd_mode() {
	attack "entry() { git cat-file tree main: | perl -0777 -e 'my (\$m, \$n, \$i) = @ARGV; local \$_ = <STDIN>; my %all = (\$n => qq(\$m \$n\\0) . pack q(H*), \$i);
			while (/\\G([0-7]+) ([^\\0]+)\\0(.{20})/sg) { \$all{\$2} //= qq(\$1 \$2\\0\$3) } print @all{sort keys %all}' \"\$@\" | git hash-object -t tree -w --stdin --literally; }
		echo good >good-$1; git add good-$1; git commit -qm 'good $1'
		becomes \"\$(entry $1 $2 $3)\""
}

# refused_mode MODE wants the commit to be refused by name, and the one before it to land.
refused_mode() {
	held_first inner-invalid "the mode $1"
	expected 'the commit before lands'
	await 5000 eval "[ \"\$(git log -1 --format=%s main)\" = 'good $1' ]" || surprised "the branch is at $(git log -1 --format=%s main)"
}

# held_first is held, where what comes before may land.
held_first() {
	expected "held: $1 ($2)"
	[ -z "$surprise" ] || return
	if await 5000 held_by "$1" "$2"; then seen "$(hold)"; else surprised "not held like that: $(hold)"; fi
	user_looks
}

F1() {
	tries 'a .gitignore with a mode that git reads as a file, which exposes the workspace to git'
	odd_mode 100600 .gitignore '$(blob "!.*")'
	plainly "$pulled" 'git status --porcelain | has "$workspace"' && return
	refused_mode 100600
	mends
}

F2() {
	tries 'a link with a mode that git reads as a link, which leads out of the repository'
	odd_mode 120777 link '$(blob ../../../../etc)'
	plainly "$pulled" '[ -L link ]' && return
	refused_mode 120777
	mends
}

F3() {
	tries 'a gitlink with a mode that git reads as a gitlink'
	odd_mode 160777 sub '$(git rev-parse HEAD)'
	plainly 'git fetch -q --no-recurse-submodules $plain main && git read-tree FETCH_HEAD' 'git ls-files -s sub | has "^160000"' && return
	refused_mode 160777
	mends
}

F4() {
	tries 'a key in a file with a mode that git reads as a file'
	odd_mode 100600 id_key '$(printf "%s\n%s\n%s\n" "-----BEGIN OPENSSH PRIVATE ""KEY-----" b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW "-----END OPENSSH PRIVATE ""KEY-----" | git hash-object -w --stdin)'
	plainly "$pulled" 'grep -q PRIVATE id_key' && return
	refused_mode 100600
	mends
}

F5() {
	local line
	tries 'an ignore file with patterns that expose the workspace only as git reads them'
	attack 'printf "%s\n" "!.**/**" >.gitignore; git add .gitignore; git commit -qm ignore; told'
	plainly "$pulled" 'git status --porcelain --untracked-files=all | has "$workspace"' && return
	held policy workspace-exposed
	brief=1
	for line in '![.]**' '!/.**' '!**/.*[[:xdigit:]]/' '\357\273\277!.*' '!.*\r'; do
		restored
		attack "printf '$line\\n' >.gitignore; git add .gitignore; git commit -qm ignore; told"
		held policy workspace-exposed
	done
	restored
	attack 'ln -sf docs/text .gitignore; git add .gitignore; git commit -qm link; told'
	held policy workspace-exposed
	mends
}

F6() {
	tries "attributes that apply the user's filter to a file, in a line that looks like a macro"
	fresh 'git config filter.mine.smudge "touch $canary; cat"' || return
	attack 'printf "%s\n" "[attr] filter=mine" >.gitattributes; echo x >a; git add .gitattributes a; git commit -qm attributes; told'
	plainly "$pulled" && return
	held policy user-driver
	brief=1
	restored
	attack 'printf "%s\n" "\"[attr] m n\" filter=mine" "* m" >.gitattributes; git add .gitattributes; git commit -qm quoted; told'
	held policy user-driver
	mends
}
