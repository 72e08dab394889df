/*
Git-airlock lets a coding agent work unattended on a repository. It is used as a git command:

	git airlock start --network open --env ANTHROPIC_API_KEY --tool ~/.local/bin/claude -- claude
	git airlock status
	git airlock log --graph

# The model

The user's repository is the outer repository. "start" takes a snapshot of the checked-out branch, its files
without its history, into a workspace: a folder of the work tree that git does not see and that belongs
to a phantom UID, which no account has. It starts a prison in which only that folder exists. What the agent
commits there, on the inner branch main, a daemon on the host takes out through a quarantine,
rewrites to the user's identity, and lands on the outer branch as a fast-forward.

When a landing would touch the user's changes, or another branch is checked out, the commits are held: they
wait as pending, "status" says why and what to type, and landing goes on by itself when the cause is gone.

	outer branch --snapshot--> workspace (prison: agent commits)
	     ^                         |
	     +-- land <- build <- check <- quarantine <- export

# Reading the code

Each command is a file of its own: init.go, start.go, visit.go, run.go, status.go, promote.go, stop.go, clear.go, list.go,
doctor.go, selftest.go, policy.go, image.go, scan.go, log.go, daemon.go. A command makes a request of options and settings
(settings.go), makes one call, and shows the result; exit.go decides the exit status of all. The rooms below:

  - internal/session is the workflow: start, resume, run, promote, stop, clear, status. It prints nothing.
  - internal/environment makes what the agent works in: recipe, consent, images, missing tools, included files, startup.
  - internal/ui is how the program speaks: messages, pager, progress, status text, questions.
  - internal/manual explains it: help, manual pages, completion.

Package snapshot makes the workspace, package prison the box, package promote the way back; only package gitops runs git.

# Settings

Every option of "start" is also a git configuration key, with the option before the key and the key before
the default:

	[airlock]
		backend = auto
		image = ...	; for containers: with git and a shell
		network = none
		memory = 4g
		cpus = 2
		pids = 512
		tool = ~/.local/bin/agent	; any number of them
		autoLand = true
		workspace = inside
		maxFileSize = 50m	; a larger file is held
		policyFile = ...	; a policy of your own, as a team's
		name = ...	; who landed commits are by, instead of user.name
		email = ...
		allowSecrets = false
		exclude = secret/	; left out of snapshots, as in a .gitignore; any number
	[airlock "policy"]
		host-exec = hold	; each rule: hold, flag or off
	[airlock "scan"]
		allow = private-key:/test.pem # made for the tests	; any number of each
		pattern = high acme-token ACME-[0-9a-f]{32}
		file = medium acme-key *.acme

# Exit statuses

	0	done
	1	it went wrong
	2	wrong usage or a setting that cannot be read
	3	held, or refused until the user acts
	4	no airlock here
	5	the isolation asked for cannot be provided on this machine
	128+n	ended by signal n, as by ^C (130)

"visit" and "run" return the status of the command they ran, 126 and 127 as a shell does, and 125 for
every failure of their own, in place of 1 to 5; "run" returns 3 if the command succeeded and something is held.
*/
package main
