/*
Git-airlock lets a coding agent work unattended on a repository. It is used as a git command:

	git airlock start --network open --env ANTHROPIC_API_KEY --tool ~/.local/bin/claude -- claude
	git airlock status
	git airlock log --graph

# The model

The user's repository is the outer repository. "start" takes a snapshot of the checked-out branch: its files, without
its history. The snapshot goes into a workspace, a folder of the work tree that git ignores and that belongs to a phantom
UID, which no account has. "start" then starts a prison, which contains no other folder of the user, and a daemon on the
host. The agent commits in the workspace, on the inner branch main. The daemon takes these commits out through a
quarantine, rewrites them to the user's identity, and lands them on the outer branch as a fast-forward.

If a landing would overwrite the user's changes, or if another branch is checked out, the commits are held: they wait as
pending. "status" prints the reason and the next command. Landing continues by itself when the reason is gone.

	outer branch --snapshot--> workspace (prison: agent commits)
	     ^                         |
	     +-- land <- build <- check <- quarantine <- export

# Reading the code

Each command has its own file below internal/command: lifecycle (start, visit, run, stop, clear, daemon), landing
(status, promote, undo, redo, sync, check, list, policy, log), review (review, diff, approve, reject, fix, hooks, pr), records
(checkpoint, runs, inspect, compare, report, replay, events, execs), proof (verify, share, fetch, ci), net, and prepare (init,
doctor, selftest, image, scan, agents). A command reads options and settings, makes one call, and prints the result. "help", "completion" and its "complete"
are in this folder, since they describe all commands. The other packages are:

  - internal/cmdline has what all commands share: usage, help, exit statuses. Its documentation shows how to add one.
  - internal/request reads the options and settings of start.
  - internal/session is the workflow: start, resume, run, promote, stop, clear, status. It prints nothing.
  - internal/worktrees finds the worktree of an airlock again, which the user may move, copy and remove.
  - internal/settings checks all settings of an airlock before it starts.
  - internal/inbound brings the user's newer commits into a workspace.
  - internal/prisons has the prison of an airlock: its backend, what it is made of, the exporter's prison, the self-test.
  - internal/environment prepares the agent's environment: recipe, consent, images, missing tools, included files, startup.
  - internal/agents knows the agents by name: their programs, options, keys and files.
  - internal/launched remembers the launched command and its terminal.
  - internal/checking runs the check of a commit (airlock.check) in a prison of its own.
  - internal/checkpoints keeps and restores the workspace. internal/checkpoints/resident asks the daemon for a checkpoint.
  - internal/runs records what a run did.
  - internal/programs reads the record of programs that ran in a prison.
  - internal/pushcheck looks before a push for commits that nobody has reviewed.
  - internal/network has the rules of the network: their sources and changes, what they allow, and what the record shows.
  - internal/terminal returns the text that a terminal would show.
  - internal/ui prints to the user: messages, pager, progress, status text, questions.
  - internal/manual is the help: -h texts, manual pages, completion.

Package snapshot fills the workspace, package prison isolates the agent, and package promote lands its commits. Only
package gitops runs git. Package words formats counts and texts, and every package may import it.

# Settings

Every option of "start" is also a git configuration key. The option has priority over the key, and the key over the
default:

	[airlock]
		backend = auto
		image = ...	; for containers; it must contain git and a shell
		network = none
		allow = registry.npmjs.org	; what the network allowlist reaches; can be set more than once
		deny = **.paste.example	; wins; can be set more than once
		memory = 4g
		cpus = 2
		pids = 512
		tool = ~/.local/bin/agent	; can be set more than once
		review = off	; land, push: when you look at commits first
		workspace = inside
		maxFileSize = 50m	; larger files are held
		policyFile = ...	; a policy of your own, in the form of a team's
		name = ...	; the author of landed commits, instead of user.name
		email = ...
		allowSecrets = false
		exclude = secret/	; a pattern of files to leave out of snapshots; can be set more than once
	[airlock "policy"]
		host-exec = hold	; each rule: hold, flag or off
	[airlock "scan"]
		allow = private-key:/test.pem # made for the tests	; these three can be set more than once
		pattern = high acme-token ACME-[0-9a-f]{32}
		file = medium acme-key *.acme

# Exit statuses

	0	success
	1	failure
	2	wrong usage, or a setting that cannot be read
	3	held, or refused until the user acts
	4	no airlock in this worktree
	5	the requested isolation is not available on this machine
	128+n	ended by signal n, such as 130 for ^C

"visit" and "run" return the status of the command that they ran, 126 and 127 as a shell does, and 125 for their own
failures, in place of 1 to 5. "run" returns 3 if the command succeeded and a commit is held.
*/
package main
