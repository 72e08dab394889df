# H: programs, libraries and settings of the host that are looked for in the work tree.
# shellcheck shell=bash disable=SC2016,SC2034,SC2154

# The programs that git-airlock starts on the host, and those that git starts by itself. The user's own git starts git-airlock.
host_programs=$(sed -n '/^var programs = /,/^}/{s|//.*||;p;}' "$top/gitops/hostenv/programs.go" | grep -o '"[^"]*"' | tr -d '"' | grep -vx git-airlock)

# canaries FOLDER... puts a program that fires in each of these folders of the tree, for each name. They lie there
# as if they had landed; what matters is who finds them.
canaries() {
	local folder name
	for folder; do
		mkdir -p "$outer/$folder"
		[ "${host_programs-}" ] || surprised 'there is no list of programs'
		for name in $host_programs; do
			printf '#!/bin/sh\n/usr/bin/touch %q\nexit 1\n' "$canary" >"$outer/$folder/$name"
			chmod +x "$outer/$folder/$name"
		done
	done
}

# every_command runs the commands of a user one after the other, by the program itself as no git is to be trusted to be found.
every_command() {
	local command
	for command in doctor 'status --json' list 'log -1' policy scan promote stop start selftest "visit -- true" promote; do
		# shellcheck disable=SC2086
		(cd "$outer" && timeout "$hang" "$base/bin/git-airlock" $command) >"$work/one" 2>&1 </dev/null
		case $?:$command in
		0:* | 1:scan | 1:selftest | 1:doctor | 3:promote) ;;
		*) surprised "\"$command\" fails: $(head -n 1 "$work/one")" ;;
		esac
		if ran; then surprised "\"$command\" runs a program of the tree" && return; fi
	done
}

H1() {
	local old=$PATH
	tries 'programs in the work tree, found through a dozen forms of PATH'
	fresh 'mkdir -p .venv/bin bin; echo "/.venv/
/bin/
/node_modules/" >>.git/info/exclude' || return
	canaries .venv/bin bin node_modules/.bin tools/bin
	mkdir -p "$work/out/bin"
	ln -s "$outer/bin" "$work/out/link"
	ln -s link "$work/out/again"
	ln -s "$outer" "$work/out/top"
	ln -s ../../"${outer##*/}"/bin/git "$work/out/bin/git"
	ln -s ../../"${outer##*/}"/bin/newuidmap "$work/out/bin/newuidmap"
	git -C "$outer" worktree add -q "$work/linked" -b linked 2>/dev/null
	mkdir -p "$work/linked/bin"
	cp -r "$outer/bin/." "$work/linked/bin"
	PATH=.venv/bin:.:bin:../${outer##*/}/bin:$outer/.venv/bin:$outer//node_modules/.bin/:$work/out/link:$work/out/again:$work/out/top/tools/bin:$work/out/bin:$work/linked/bin::$old
	if [ -n "$proving" ]; then
		cd "$outer" && git --version >/dev/null 2>&1
		PATH=$old
		expected 'plain git falls for it'
		if ran; then seen 'it did: the payload ran'; else surprised 'it did not'; fi
		return
	fi
	every_command
	PATH=$old # the daemon has the other one
	attack work
	lands
	git -C "$outer" worktree remove --force "$work/linked"
	rm -rf "$work/out"
}

H2() {
	local old=$PATH
	tries 'libraries, settings and options that variables name in the work tree'
	fresh 'git config filter.say.smudge "cat; :"; git config filter.say.clean cat; echo "*.f filter=say" >.gitattributes; git add -A; git commit -qm filter' || return
	canaries bin
	printf '. "%s/bin/git"\n' "$outer" >"$outer/env.sh"
	if [ -n "$proving" ]; then
		(cd "$outer" && ENV=./env.sh BASH_ENV=./env.sh bash -c 'git --version; true') >/dev/null 2>&1
		expected 'a shell falls for it'
		if ran; then seen 'it did: the payload ran'; else surprised 'it did not'; fi
		return
	fi
	export BASH_ENV=./env.sh ENV=./env.sh GIT_EXEC_PATH=$outer/bin LD_LIBRARY_PATH=$outer NODE_OPTIONS='--require ./x' PYTHONPATH=. PERL5LIB=. GCONV_PATH=. \
		GIT_SSH=$outer/bin/ssh GIT_ASKPASS=bin/ssh LESSOPEN='|bin/cat %s' EDITOR=bin/vi
	every_command
	attack 'echo 1 >a.f; git add -A; git commit -qm filtered; told'
	unset BASH_ENV ENV GIT_EXEC_PATH LD_LIBRARY_PATH NODE_OPTIONS PYTHONPATH PERL5LIB GCONV_PATH GIT_SSH GIT_ASKPASS LESSOPEN EDITOR
	lands
	if ran; then surprised 'the payload ran'; fi
}

H3() {
	tries 'a link that leads PATH into the work tree after the daemon has started'
	mkdir -p "$work/late"
	PATH=$work/late:$PATH fresh : || return
	canaries bin
	no_plain 'plain git has no daemon' && return
	rmdir "$work/late" && ln -s "$outer/bin" "$work/late"
	attack work
	lands
	rm "$work/late"
}

H4() {
	tries 'git-airlock itself in the work tree'
	fresh 'mkdir -p bin' || return
	no_plain 'it is our own program' && return
	cp "$base/bin/git-airlock" "$outer/bin/git-airlock"
	expected 'it refuses to start'
	if (cd "$outer" && bin/git-airlock promote) >"$said" 2>&1; then surprised 'it starts'; else
		if grep -q 'started from a work tree' "$said"; then seen "$(head -n 1 "$said")"; else surprised "$(head -n 1 "$said")"; fi
	fi
	rm -r "${outer:?}/bin"
}

H5() {
	tries 'a program in a folder that the user ignores, where PATH finds it'
	fresh 'mkdir -p .venv/bin; echo "/.venv/" >.gitignore; git add .gitignore; git commit -qm ignore' || return
	attack 'for name in newuidmap git sleep; do payload .venv/bin/$name; done; git add -f .venv; git commit -qm env; told'
	plainly "$pulled; PATH=\$PWD/.venv/bin:\$PATH; sleep 0" && return
	held policy ignored-path
	restored
	attack ': >.gitignore; payload .venv/bin/git; git add -A -f; git commit -qm env; told'
	held policy ignored-path
	mends
}

H6() {
	tries "the user's settings and hooks, through links into the tree and commands without a path"
	fresh 'mkdir -p dot lib; cp "$HOME/.gitconfig" dot/gitconfig; printf "#!/bin/sh\n" >dot/hook; chmod +x dot/hook; echo "import sys; sys.stdout.write(sys.stdin.read())" >lib/nb.py
		echo "*.f filter=nb" >.gitattributes; git config filter.nb.smudge "python3 -m lib.nb"; git config filter.nb.clean cat; git add -A; git commit -qm dotfiles
		mv "$HOME/.gitconfig" "$HOME/.gitconfig.kept"; ln -s "$outer/dot/gitconfig" "$HOME/.gitconfig"; ln -s ../../dot/hook .git/hooks/post-commit' || return
	attack 'git config -f dot/gitconfig core.fsmonitor "$fire"; git add -A; git commit -qm settings; told'
	if plainly "$pulled; git status"; then mv -f "$HOME/.gitconfig.kept" "$HOME/.gitconfig" && return; fi
	held policy user-driver
	restored
	attack 'payload dot/hook; git add -A; git commit -qm hook; told'
	held policy user-driver
	restored
	attack 'echo "import os; os.system(\"$fire\")" >lib/nb.py; echo 1 >x.f; git add -A; git commit -qm module; told'
	held policy user-driver
	restored
	attack 'git mv dot dots; git commit -qm moved; told'
	held policy user-driver
	mends
	mv -f "$HOME/.gitconfig.kept" "$HOME/.gitconfig"
}

H7() {
	tries 'git-lfs and iconv, with a server and a module that the tree names, and an ignore file that is none in UTF-8'
	fresh : || return
	attack 'printf "[lfs]\n\turl = http://127.0.0.1:9/x\n" >.lfsconfig; git add -A; git commit -qm lfs; told'
	plainly "$pulled" '[ -e .lfsconfig ]' && return
	held policy user-driver
	restored
	attack 'echo ".gitignore working-tree-encoding=UTF-16LE" >.gitattributes; printf "!*\n " >.gitignore; git add -A; git commit -qm disk; told'
	held policy workspace-exposed
	restored
	attack 'echo "*.t working-tree-encoding=../../x" >.gitattributes; git add -A; git commit -qm charset; told'
	held policy user-driver
	mends
}

# listener runs a server for git-lfs until the case ends, which notes who asks. Its address is $address.
listener() {
	rm -f "$work/asked" "$work/port"
	python3 - "$work" <<'TEXT' &
import http.server, os, sys
class Notes(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        open(sys.argv[1] + "/asked", "a").write(self.path + "\n")
        self.send_error(404)
    do_GET = do_POST
    def log_message(self, *args): pass
s = http.server.HTTPServer(("127.0.0.1", 0), Notes)
open(sys.argv[1] + "/port.new", "w").write(str(s.server_port))
os.rename(sys.argv[1] + "/port.new", sys.argv[1] + "/port")
s.serve_forever()
TEXT
	listening=$!
	await 5000 test -e "$work/port" && address=http://127.0.0.1:$(cat "$work/port")
}

# pointer has the agent commit what git-lfs would fetch. No filter of the agent's writes it.
pointer='printf "version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 5\n" 7 >x.bin; git add -A; git commit -qm pointer; told'

H8() {
	tries 'git-lfs, with a server that a landed file names, without the rule for such files'
	if ! command -v git-lfs >/dev/null || ! command -v python3 >/dev/null; then untriable lfs 'git-lfs or python3 is not installed' && return; fi
	fresh 'echo "*.bin filter=lfs" >.gitattributes; git add -A; git commit -qm lfs; git config airlock.policy.user-driver off
		git config filter.lfs.smudge "git-lfs smudge -- %f"; git config filter.lfs.clean "git-lfs clean -- %f"' || return
	listener || surprised 'there is no server'
	local config="printf '[lfs]\n\turl = $address/x\n' >.lfsconfig; git add -A; git commit -qm lfsconfig; told"
	if [ -n "$proving" ]; then
		attack "$config; $pointer"
		plainly "$pulled" '[ -s "$work/asked" ]'
	else
		attack "$config"
		lands
		attack "$pointer"
		lands
		restored
		attack "$config; printf 1 >y; $pointer"
		lands
		expected 'the server gets no request'
		if [ -s "$work/asked" ]; then surprised 'it was asked'; else seen 'it was not'; fi
	fi
	kill "$listening"
	wait "$listening" 2>/dev/null
	rm -f "$work/asked" "$work/port"
}

H9() {
	local file
	tries 'files of the tree that settings in variables, templates, attributes, hooks and conditional includes name'
	local monitor=core.askPass
	[ -z "$proving" ] || monitor=core.fsmonitor
	export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=$monitor GIT_CONFIG_VALUE_0=t/monitor GIT_CONFIG_KEY_1=core.editor GIT_CONFIG_VALUE_1=t/editor
	fresh 'git config core.attributesFile t/attributes; git config init.templateDir t/template; git config hook.x.command "sh t/hook.sh"; git config core.sshCommand "sh t/ssh"
		git config "includeIf.hasconfig:remote.*.url:https://example.org/**.path" ../t/included' || { unset GIT_CONFIG_COUNT && return; }
	if [ -n "$proving" ]; then
		attack 'payload t/monitor; git add -A; git commit -qm monitor; told'
		plainly "$pulled; git status"
		unset GIT_CONFIG_COUNT
		return
	fi
	brief=1
	for file in monitor editor attributes template/hooks/post-checkout hook.sh ssh included; do
		attack "payload t/$file; git add -A; git commit -qm x; told"
		held policy user-driver
		restored
	done
	unset GIT_CONFIG_COUNT
	mends
}

H10() {
	tries "a link on the way to the user's settings that leads into the tree after the commit was checked"
	fresh 'mkdir -p dot "$work/dots"; cp "$HOME/.gitconfig" dot/gitconfig; git add -A; git commit -qm dotfiles; git switch -q -c other
		cp "$HOME/.gitconfig" "$HOME/.gitconfig.kept"; mv "$HOME/.gitconfig" "$work/dots/gitconfig"; ln -s "$work/way/gitconfig" "$HOME/.gitconfig"; ln -s "$work/dots" "$work/way"; git switch -q main' || return
	attack 'git config -f dot/gitconfig core.fsmonitor "$fire"; git add -A; git commit -qm settings; told'
	if [ -n "$proving" ]; then
		ln -sfn "$outer/dot" "$work/way"
		plainly "$pulled; git status"
	else
		lands
		ln -sfn "$work/dots" "$work/way"
		git -C "$outer" switch -q other
		attack 'git config -f dot/gitconfig core.pager "$fire"; git add -A; git commit -qm pager; told'
		held branch-switched
		mv "$work/way" "$work/before"
		ln -s "$outer/dot" "$work/way"
		expected 'held: user-driver'
		if await 5000 eval 'git airlock policy --json | has user-driver'; then seen 'the pending commit is checked again'; else surprised 'it is not checked again'; fi
		rm "$work/way"
		ln -s "$work/dots" "$work/way"
		git -C "$outer" switch -q main
		begun_at=$(now)
		lands
	fi
	rm -f "$HOME/.gitconfig" "$work/way" "$work/before"
	mv "$HOME/.gitconfig.kept" "$HOME/.gitconfig"
}

H11() {
	local repository
	tries 'hooks of the other worktrees and repositories whose folders are in the work tree'
	fresh 'git worktree add -q --detach others/tree; git init -q others/repo; git -C others/repo commit -q --allow-empty -m own; git init -q --bare others/bare; git config core.hooksPath .hooks; git -C others/repo config core.hooksPath .hooks' || return
	attack 'payload others/tree/.hooks/pre-commit; git add -fA; git commit -qm tree; payload others/repo/.hooks/pre-commit; git add -fA; git commit -qm repo
		payload others/bare/hooks/update; git add -fA; git commit -qm bare; told'
	[ -z "$proving" ] || plainly "$pulled; git -C others/tree commit -q --allow-empty -m mine"
	[ -z "$proving" ] || return
	held collision "another repository"
	for repository in tree repo; do git -C "$outer/others/$repository" commit -q --allow-empty -m mine; done
	git -C "$outer" push -q others/bare HEAD:refs/heads/x
	mends
}
