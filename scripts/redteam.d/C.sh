# C: content that is harmful when it lands.
# shellcheck shell=bash disable=SC2016,SC2154

# pulled is for --prove: a plain fetch and checkout of the agent's commit.
pulled='git fetch -q $plain main && git read-tree -m -u HEAD FETCH_HEAD && git commit -q -m pulled'

# named NAME makes the agent commit a file with that name, in printf(1) notation, and bypasses git's checks.
named() { attack "git reset -q --hard \"\$(git rev-list --max-parents=0 main)\"; becomes \"\$(raw 100644 \"\$(printf '$1')\" \"\$(blob)\")\""; }

C1() {
	local name
	tries '.git in seven spellings'
	named .git
	plainly 'git fetch -q $plain main' 'git ls-tree FETCH_HEAD | has "\.git$"' && return
	held inner-invalid "$tree"
	brief=1
	for name in .GIT git~1 '.git ' '.git::$INDEX_ALLOCATION' .. . ; do
		named "$name"
		held inner-invalid "$tree"
	done
	mends
}

C2() {
	tries '.git with an invisible character in it'
	named '.g\342\200\214it'
	plainly 'git fetch -q $plain main; git read-tree FETCH_HEAD && git checkout-index -a' '[ -e "$(printf ".g\342\200\214it")" ]' && return
	held inner-invalid "$tree"
	mends
}

C3() {
	local name
	tries 'names that other systems change'
	named 'a\\b'
	plainly 'git fetch -q $plain main' 'git ls-tree -z FETCH_HEAD | has -F "a\\b"' && return
	held policy odd-path
	brief=1
	for name in C:x aux a:b 'nul.txt' 'x. '; do
		restored
		named "$name"
		held policy odd-path
	done
	for name in GITMOD~1 '.gitmodules\342\200\214'; do
		restored
		named "$name"
		held_somehow 'policy|inner-invalid'
	done
	mends
}

C4() {
	tries 'a name with a line break and an escape sequence'
	named 'a\033[2J\nb'
	plainly 'git fetch -q $plain main; git ls-tree -z --name-only FETCH_HEAD' 'grep -q "$(printf "\033")" "$said"' && return
	held policy odd-path
	mends
}

C5() {
	tries 'names that differ only in case, or in the form of accents'
	attack 'echo other >readme; git add readme; git commit -qm case; told'
	plainly "$pulled" '[ -e README ] && [ -e readme ]' && return
	held policy case-collision
	restored
	attack 'echo 1 >"$(printf "caf\303\251")"; echo 2 >"$(printf "cafe\314\201")"; git add -A; git commit -qm accents; told'
	held policy case-collision
	mends
}

C6() {
	tries "hooks in the tree, where the user's core.hooksPath leads"
	fresh 'git config core.hooksPath .husky' || return
	attack 'for h in post-checkout post-commit reference-transaction post-index-change pre-commit post-merge post-applypatch; do payload .husky/$h; done
		git add .husky; git commit -qm hooks --no-verify; told'
	plainly "$pulled" && return
	held policy user-driver
	git config airlock.policy.user-driver off
	# The user has accepted it, so the user's git may run it from then on.
	brief=1
	lands
	git airlock promote 2>"$said" || surprised "promote: $(tail -n 1 "$said")"
}

C7() {
	tries 'a program in the tree that a filter of the user runs'
	fresh 'git config filter.fmt.smudge ./tools/filter; git config filter.fmt.clean cat; echo "*.f filter=fmt" >.gitattributes; echo 1 >a.f; git add -A; git commit -qm filter' || return
	attack 'payload tools/filter; echo 2 >a.f; git add -A; git commit -qm filter; told'
	plainly "$pulled; rm a.f; git checkout a.f" && return
	held policy user-driver
	mends
	git config --add credential.helper '!./docs/helper'
	git config --add credential.helper cache
	attack 'payload docs/helper; git add -A; git commit -qm helper; told'
	held policy credential.helper
	mends
}

C8() {
	tries "attributes that apply the user's drivers to files"
	fresh 'git config diff.mine.textconv "touch ran; cat"' || return
	attack 'echo "* diff=mine" >.gitattributes; git add -A; git commit -qm attributes; told'
	plainly "$pulled; git log -p -1" '[ -e ran ]' && return
	held policy user-driver
	mends
}

C9() {
	tries 'a bare repository in a folder'
	attack 'git init -q --bare docs/r; git -C docs/r config core.fsmonitor "$fire"; git -C docs/r config core.bare false; git -C docs/r config core.worktree .
		touch docs/r/objects/keep docs/r/refs/keep; git add -A -f docs/r; git commit -qm bare; told'
	plainly "$pulled; cd docs/r && git status" && return
	held policy embedded-repo
	mends
}

C10() {
	tries '.gitmodules with addresses that are commands'
	attack 'printf "[submodule \"x\"]\n\tpath = x\n\turl = ext::sh -c id\n" >.gitmodules; git add .gitmodules; git commit -qm modules; told'
	plainly "$pulled" '[ -e .gitmodules ]' && return
	held policy submodule
	restored
	attack 'printf "[submodule \"x\"]\n\tpath = x\n\turl = -u./evil\n\tupdate = !evil\n" >.gitmodules; git add .gitmodules; git commit -qm modules; told'
	held_somehow 'policy|inner-invalid'
	mends
}

C11() {
	local target
	tries 'links that lead out: up, absolute, into .git, into the workspace, through another link'
	attack 'ln -s ../../.ssh out; git add out; git commit -qm link; told'
	plainly "$pulled" '[ -L out ]' && return
	held policy symlink-escape
	brief=1
	for target in "$work/secret" .git/config "$workspace/x" docs/../../x; do
		restored
		attack "ln -s '$target' out; git add out; git commit -qm link; told"
		held policy symlink-escape
	done
	restored
	attack 'ln -s docs/up step; ln -s ../.. docs/up; git add -A; git commit -qm links; told'
	held policy symlink-escape
	mends
}

C12() {
	tries "a file at the path of the user's ignored .env"
	attack 'echo "the agent says" >.env; git add -f .env; git commit -qm env; told'
	plainly "git fetch -q \$plain main; git read-tree -m -u HEAD FETCH_HEAD" '[ "$(cat .env)" = "the agent says" ]' && return
	held collision .env
	mends
}

# flags FILE RULE makes the agent commit a file, which must land with a flag.
flags() {
	attack "mkdir -p \"\$(dirname '$1')\"; echo '{\"scripts\": {\"postinstall\": \"$id\"}}' >'$1'; git add -f '$1'; git commit -qm '$1'; told"
	plainly "$pulled" "[ -e '$1' ]" && return
	lands
	flagged "$2"
}

# all_flagged RULE FILE... does the same with several files.
all_flagged() {
	local rule=$1
	shift
	flags "$1" "$rule"
	[ -z "$proving" ] || return 0
	brief=1
	for file in "${@:2}"; do flags "$file" "$rule"; done
}

C13() { tries 'what CI runs by itself' && all_flagged host-exec .github/workflows/x.yml .gitlab-ci.yml Jenkinsfile; }
C14() { tries 'what editors run by themselves' && all_flagged host-exec .vscode/tasks.json .idea/runConfigurations/x.xml; }
C15() { tries 'what a shell runs by itself' && all_flagged host-exec .envrc .mise.toml .tool-versions; }
C16() { tries 'what the user runs before long' && all_flagged host-exec package.json setup.py build.rs conftest.py; }

C17() {
	tries 'settings and instructions of coding agents'
	attack 'echo "{\"mcpServers\": {\"x\": {\"command\": \"sh\"}}}" >.mcp.json; git add .mcp.json; git commit -qm mcp; told'
	plainly "$pulled" '[ -e .mcp.json ]' && return
	held policy agent-config
	restored
	attack 'mkdir .claude; echo "{\"hooks\": {\"PreToolUse\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"sh\"}]}]}}" >.claude/settings.json; git add -f .claude; git commit -qm hooks; told'
	held policy agent-config
	restored
	all_flagged agent-config AGENTS.md CLAUDE.md .cursorrules
}

C18() {
	tries 'bidirectional and invisible characters in a file and a message, and a text that ident replaces'
	attack 'printf "if access \342\200\256{ return }\n" >trojan; git add trojan; printf "subject \342\200\256tcejbus\342\200\213\n" | git commit -q -F -; told'
	plainly "$pulled; cat trojan" 'grep -q "$(printf "\342\200\256")" "$said"' && return
	lands
	flagged hidden-text
	attack 'printf "ok(a) /* \$Id:*/ && ok(b) /*\$ */\n" >ident.js; git add ident.js; git commit -qm ident; told'
	lands
	flagged hidden-text
}

C19() {
	tries 'a data file becomes a program'
	attack 'chmod +x README; git commit -qam x; told'
	plainly "$pulled" '[ -x README ]' && return
	lands
	expected 'the change of mode is shown'
	if git log -1 --summary main | has 'mode change 100644 => 100755 README'; then seen 'it is'; else surprised 'it is not'; fi
}

C20() {
	tries 'a private key'
	# The key is put together here, so that a scanner finds no key in this file.
	attack '{ printf -- "-----BEGIN %s-----\n" "RSA PRIVATE KEY"; head -c 600 /dev/urandom | base64; printf -- "-----END %s-----\n" "RSA PRIVATE KEY"; } >key; git add key; git commit -qm key; told'
	plainly "$pulled" '[ -e key ]' && return
	held policy secret
	mends
}

C21() {
	tries 'a file larger than airlock.maxFileSize'
	git config airlock.maxFileSize 1m
	attack 'head -c 3000000 /dev/urandom >large; git add large; git commit -qm large; told'
	plainly "$pulled" '[ -e large ]' && return
	held policy large-file
	mends
	git config --unset airlock.maxFileSize
}

C22() {
	tries 'escape sequences in a message, an author, a branch'
	attack 'echo $id >>work; git add work
		printf "red \033[31m \033]0;title\007 \302\233\n\nx\033[2J\r\n" | GIT_AUTHOR_NAME="$(printf "A\033[31m\342\200\256B")" git commit -q -F -; told
		git branch "$(printf "\342\200\256evil\302\233")"'
	plainly 'git -C $plain log -1 --format="%an %B"' 'grep -q "$(printf "\033")" "$said"' && return
	lands
}

C23() {
	tries 'a file in the folder of the workspace, and ignore rules that expose the folder'
	attack 'mkdir -p "$workspace"; echo x >"$workspace/x"; git add -f "$workspace"; git commit -qm inside; told'
	plainly "$pulled" '[ -e "$workspace/x" ]' && return
	held policy workspace-exposed
	restored
	attack 'echo "!/.*-*/" >>.gitignore; echo "!*" >>.gitignore; git add .gitignore; git commit -qm ignore; told'
	held policy workspace-exposed
	mends
}

C24() {
	tries 'the recipe and its replacements, which request tools and a variable of the user'
	no_plain 'plain git makes no environment' && return
	fresh : || return
	local file
	for file in .devcontainer/devcontainer.json Coding-Environment.TOML coding-environment.toml; do
		attack "mkdir -p .devcontainer; printf '[env]\npass = [\"OF_THE_USER\"]\n[startup]\ncommands = [\"env >/workspace/env\"]\n' >'$file'; git add -f '$file'; git commit -qm '$file'; told"
		held policy recipe
		brief=1
		[ "$file" = coding-environment.toml ] || restored
	done
	git airlock promote --accept recipe >"$said" 2>&1 || surprised "promote --accept: $(tail -n 1 "$said")"
	lands
	expected 'after it has landed, start still asks for consent'
	git airlock stop >"$said" 2>&1
	OF_THE_USER=$secret git airlock start >"$said" 2>&1 </dev/null
	case $? in 3) seen "$(grep -m 1 consent "$said")" ;; *) surprised "start: exit status $?, $(head -n 1 "$said")" ;; esac
	git airlock start --no-recipe >"$said" 2>&1 </dev/null || surprised "start --no-recipe: $(tail -n 1 "$said")"
	inside 'cat /workspace/env /proc/[0-9]*/environ 2>/dev/null | tr "\0" "\n"; env'
	if grep -q OF_THE_USER "$work/agent.out"; then surprised 'the variable went in'; fi
}
