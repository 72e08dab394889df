# Completion of "git airlock" for fish. It is configuration, not a completion that fish loads when it is needed: those
# are looked for by the name of the program, and git has its own.

function __git_airlock_offer
	set -l words (commandline -opc)
	# The command is "airlock", or an alias for it, behind git's own options. Those that choose a repository are passed on.
	set -l at 1
	set -l place
	if string match -qr '(^|/)git$' -- $words[1]
		set at 2
		while string match -q -- '-*' $words[$at]
			switch $words[$at]
				case -C --git-dir --work-tree
					set -a place $words[$at..(math $at + 1)]
					set at (math $at + 1)
				case '--git-dir=*' '--work-tree=*'
					set -a place $words[$at]
				case -c --namespace --config-env
					set at (math $at + 1)
			end
			set at (math $at + 1)
		end
	end
	set -l word (commandline -ct)
	# A path may stand behind "--option=", a whole word is offered all the same.
	set -l stem (string match -r '^.*=' -- $word)
	set -l rest (string replace -r '^.*=' '' -- $word)
	for line in (git $place airlock complete -- $words[(math $at + 1)..] $word 2>/dev/null)
		switch $line
			case :files
				__fish_complete_path $rest | string replace -r '^' -- "$stem"
			case :folders
				__fish_complete_directories $rest | string replace -r '^' -- "$stem"
			case :programs
				complete -C "$rest" | string replace -r '^' -- "$stem"
			case :gitlog
				complete -C "git log $word"
			case '*'
				echo $line
		end
	end
end

complete -c git-airlock -f -a '(__git_airlock_offer)'
complete -c git -n '__fish_git_using_command airlock' -f -a '(__git_airlock_offer)'
complete -c git -n __fish_git_needs_command -f -a airlock -d 'let a coding agent work on a snapshot, and land its commits'
