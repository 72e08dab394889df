package manual

import (
	"fmt"
	"strings"
)

// The texts that -h and the manual have in common. Words between backticks are typed literally.

// Explained is a word and its explanation.
type Explained struct{ Word, Text string }

// model explains the model of an airlock, one paragraph an element.
var model = []string{
	"The user's repository is the outer repository. `git airlock start` takes a snapshot of the checked-out branch: its files, " +
		"without its history. The snapshot goes into a workspace, a folder that git ignores and that belongs to a user id which no " +
		"account has. `start` then starts a prison, in which no other folder of the user exists, and a daemon on the host.",
	"The agent commits in the workspace, on the inner branch main. The daemon takes these commits out through a quarantine and checks " +
		"them against the rules of the policy gate. It rewrites them to the user's name and lands them on the outer branch as a " +
		"fast-forward, exact to the byte unless the branch has moved. Each landed commit has a note on its origin in refs/notes/airlock.",
	"If a landing would overwrite the user's changes, or if another branch is checked out, the commits are held: they wait as pending. " +
		"`git airlock status` prints the reason and the next command. Landing continues by itself when the reason is gone.",
}

// exitStatuses lists all exit statuses of the program. cmdline.ExitStatus assigns them.
var exitStatuses = []Explained{
	{"0", "success"},
	{"1", "failure"},
	{"2", "wrong usage or unreadable settings"},
	{"3", "held or refused until you act"},
	{"4", "no airlock in this worktree"},
	{"5", "the requested isolation is not available"},
	{"128+n", "ended by signal n, such as 130 for ^C"},
}

// ofCommands explains the exit statuses of the commands that run another one.
const ofCommands = `"visit" and "run" return the status of the command that they ran, 126 if it cannot be executed, 127 if it is not ` +
	`found, and 125 for their own failures, in place of 1 to 5. "run" returns 3 if the command succeeded and a commit is held.`

// exitStatusHelp is the paragraph at the end of each help text.
var exitStatusHelp = func() string {
	var parts []string
	for _, s := range exitStatuses {
		parts = append(parts, s.Word+" "+s.Text)
	}
	return "Exit status: " + strings.Join(parts, "; ") + ". " + ofCommands
}()

// HoldReasons explains each reason why commits do not land.
var HoldReasons = map[string]string{
	"operation-in-progress": "a merge, rebase, am, cherry-pick, revert or bisect is in progress in your work tree",
	"branch-deleted":        "the airlock's branch does not exist any more",
	"branch-switched":       "another branch is checked out here, or the airlock's branch is checked out in a second worktree, too",
	"detached-head":         "no branch is checked out",
	"collision":             "landing would overwrite an untracked, ignored, staged or unstaged change of yours",
	"conflict":              "your commits and the agent's commits changed the same lines; `git airlock promote --resolve` starts the merge",
	"index-locked":          "another git process is using the index, or left its lock file behind",
	"disk-full":             "the disk is full, or a disk quota is used up",
	"inner-invalid":         "the inner repository did not pass the checks of the quarantine",
	"inner-main":            "the inner repository has no branch main",
	"workspace-full":        "the workspace grew beyond airlock.maxWorkspace, or the disk was nearly full, and the prison was stopped",
	"policy":                "a rule of the policy gate holds a commit; see `git airlock policy`",
	"check":                 "airlock.check has not passed on the tree yet; see `git airlock check`",
	"review":                "airlock.review is land, or the agent must fix a commit: commits wait for `git airlock approve`, or `git airlock promote`",
}

// Setting is a key in git's configuration, with the commands on whose pages it is explained, its default, and what it does. These commands
// read the setting, or show what it does.
type Setting struct{ Key, Commands, Otherwise, Text string }

// Settings lists the program's own settings.
var Settings = []Setting{
	{"airlock.backend", "start run init", "`auto`", "how the prison is made: `auto`, `native` or `docker`"},
	{"airlock.image", "start run init", "none", "a container image with git and a shell; `auto` uses `docker` for it if a container engine answers"},
	{"airlock.runtime", "start run", "the engine's", "the container runtime, such as `runsc`"},
	{"airlock.network", "start run init net", "`none`", "the network of the prison: `none`, `allowlist` for the names that rules allow, or `open` for public addresses. An open network has no loopback, link-local or private addresses and no metadata service of a cloud, and none of the host's own addresses, see git-airlock-start(1)"},
	{"airlock.agent.<name>.*", "start run agents", "", "`command`, `task`, `allow` and `env` describe an agent of your own, or change a known one, see git-airlock-agents(1)"},
	{"airlock.agent.default", "run agents", "none", "the agent of `git airlock run -p`"},
	{"airlock.allow", "start run net", "", "a rule about what the network `allowlist` reaches: `[METHOD,...] HOST[:PORT][/PATH] [=CIDR]`, `CIDR:PORT`, or a set such as `@npm`, see git-airlock-net(1); can be set more than once. An empty value drops those before it"},
	{"airlock.deny", "start run net", "", "a rule about what the network refuses, whatever other rules allow; can be set more than once"},
	{"airlock.networkLearn", "start run net", "`false`", "`true`: the network `allowlist` reaches all public hosts that no rule denies; `git airlock net learn` then prints the rules that suffice"},
	{"airlock.upstreamProxy", "start run net", "none", "a proxy for the network's connections: `http://`, `https://` or `socks5h://` with host and port, and with `USER:PASSWORD@` if the proxy wants it. Proxies that your environment names are not used"},
	{"airlock.credential.<name>.*", "start run net", "", "`source`, `host`, `env`, `header`, `format`, `methods`, `paths`, `limit` and `mode` describe a key that stays outside, see git-airlock-net(1)"},
	{"airlock.env", "start run", "", "a variable to pass to the agent: `NAME` for the value in your environment, or `NAME=VALUE`; set it once for each variable"},
	{"airlock.tool", "start run", "", "`[NAME=]PATH` of a program or folder that the agent may use, read-only, as `/tools/NAME`. The program, or the programs of the folder (see git-airlock-start(1)), are on the PATH. All users must be able to read and execute it; can be set up to 32 times"},
	{"airlock.rootfs", "start run", "", "a folder that holds another system for the prison, with `sh` and `git`, such as debootstrap makes; all users must be able to read it"},
	{"airlock.recipe", "start run", "`true`", "`false`: ignore `coding-environment.toml` and the files that can replace it (`start --no-recipe`)"},
	{"airlock.consent", "start run image", "", "the SHA-256 of a recipe that you consent to, or `!` and the SHA-256 of one that you refused; can be set more than once"},
	{"airlock.buildNetwork", "start run image", "the engine's", "the network of an image's build steps: a network of the engine, `host` or `none`"},
	{"airlock.selftest", "start run", "`false`", "`true`: refuse to start the agent in a prison that fails the selftest"},
	{"airlock.memory", "start run init", "`4g`", "memory of the prison"},
	{"airlock.cpus", "start run init", "`2`", "processor cores of the prison"},
	{"airlock.pids", "start run init", "`512`", "processes and threads in the prison"},
	{"airlock.landingNetwork", "promote", "`false`", "`true`: your filters may use the network while a landing runs them. `git-lfs` may always use it, at the addresses in your configuration, and at those in `.lfsconfig` as long as that file is the same as when the airlock was made"},
	{"airlock.keepEnv", "promote", "", "names of environment variables that your filters, pagers and signing programs need besides the usual ones; `AWS_*` stands for all names that begin with `AWS_`. `git airlock doctor` lists the variables that are not passed on"},
	{"airlock.review", "start run promote review approve hooks", "`off`", "`land`: no commit lands before you approve it; `push`: commits land at once, and `git airlock hooks install` adds a hook that refuses to push them before you approve them; `off`: commits land at once"},
	{"airlock.check", "check review approve", "none", "a command that says by its exit status whether a tree is good, such as `make test`. When commits land without others that you rejected, dropped or that are held, it must first pass on exactly the tree that lands. It runs in a prison of its own, without network; a command of the team's policy goes before yours. See git-airlock-check(1)"},
	{"airlock.check.gate", "check review approve", "`off`", "`hold`: no commit lands before `airlock.check` has passed (hold `check`)"},
	{"airlock.check.time", "check", "1800", "the seconds after which a check is ended, and counts as failed"},
	{"airlock.autoLand", "start run", "`true`", "`false`: an older name of `airlock.review=land` (`start --no-auto-land`)"},
	{"airlock.engine", "start run promote", "`tree`", "`patch`: a commit lands only if `git format-patch | git am` produces the same tree (`--engine`)"},
	{"airlock.sign", "promote approve", "`false`", "`true`: sign landed commits, on the host, according to your `user.signingKey` and `gpg.format`"},
	{"airlock.workspace", "start run", "`inside`", "`inside`: a hidden folder in the work tree, ignored by git; `gitdir`: a folder in `.git`, for tools that fail on a folder that they cannot read"},
	{"airlock.maxWorkspace", "start run", "`20g`", "the greatest size of the workspace with the agent's home. The prison is stopped (hold `workspace-full`) if they are larger, if they have more than 5,000,000 files and folders, or if a disk is nearly full. A file that was removed while a program has it open counts for the disk alone"},
	{"airlock.checkpoint", "start run checkpoint", "`runs`", "`runs`: make a checkpoint before and after each `git airlock run` and each command that `start` launches, and before `promote --rescue`, if something has changed; `commands`: also after each `git airlock visit`; `off`: only `git airlock checkpoint` and its `restore` make one"},
	{"airlock.checkpoint.max", "checkpoint", "`2g`", "the most bytes that the checkpoints of an airlock use. Beyond them, or beyond 200 checkpoints, the oldest are removed. No checkpoint is made, and none is restored, while the files of the workspace are larger than that"},
	{"airlock.runs.keep", "runs", "`50`", "the number of records of each session that `git airlock runs prune` keeps"},
	{"airlock.runs.maxBytes", "runs", "`16m`", "the most bytes of a run's record. The largest files are left out beyond it, and each file is cut at 8 MiB"},
	{"airlock.exec.record", "start run execs", "`true`", "`false`: do not record which programs run in the prison. Nothing watches them then, and a program inside may listen to system calls of its own (`seccomp_unotify(2)`)"},
	{"airlock.exec.deny", "start run execs", "", "a rule for programs whose start fails with EPERM in the prison: a pattern with `*` and `?` for the whole path, as it is typed or without links (an ordinary user's rule does not see where a link in the workspace leads), the name, or the name with the arguments, as in `git push*`; or `sha256:` and the digest of the program's file (root only). Can be set more than once, and takes effect at the next start. It protects against an agent's mistakes, not against an agent that tries: a script or a copy of the program does the same. Where the rule cannot be enforced, `start` ends with status 5"},
	{"airlock.maxFileSize", "policy", "`50m`", "the rule `large-file` holds a larger file"},
	{"airlock.policy.<rule>", "policy", "see `git airlock policy`", "`hold`, `flag` or `off`: the action of a rule of the gate"},
	{"airlock.policyFile", "policy", "none", "a file with a policy of your own, of the same form as a team's policy: an absolute path, or one that begins with `~/`"},
	{"airlock.exclude", "start run init sync scan", "", "a pattern, as in gitignore(5), of paths to leave out of snapshots; landed commits keep your files at these paths; can be set more than once"},
	{"airlock.allowSecrets", "start run sync", "`false`", "`true`: take a snapshot, or sync, even if the files contain secrets (`start --allow-secrets`)"},
	{"airlock.scan.allow", "start run scan", "", "`[RULE:]PATTERN # REASON`: allow the findings of `scan` in matching files, so that the snapshot may contain them; can be set more than once"},
	{"airlock.scan.pattern", "start run scan", "", "`high|medium|low NAME EXPRESSION`: search for a secret of your own kind, by its text"},
	{"airlock.scan.file", "start run scan", "", "`high|medium|low NAME PATTERN`: search for a secret of your own kind, by the name of its file"},
	{"airlock.limit.*", "promote", "each its own", "bounds on the export: `pack` (`2g`, also for its unpacked files), `commit` (`1m`), `blob` (`512m`), `path` (4096), `component` (255), `paths` (200000 paths changed by a commit), `entries` (1000000 files in a commit), `depth` (128), and `memory` (`1g`) and `time` (60 seconds) of the processes that read it. Beyond one of these nothing is taken out (hold `inner-invalid`). `memory` and `time` (of a processor) also bound each merge of a landing, of `promote --resolve` and of `undo --revert`, and all merges of one landing can use twice `time`; a commit that git cannot merge within them is held (`conflict`). Bounds on checking one commit: `work` (`2g`, the bytes that the rules read, or an equal amount of work) and `check` (300 seconds). Beyond one of these the commit is held (rule `budget`)"},
	{"airlock.name", "promote approve", "yours", "the author's name on landed commits. By default each landing reads `author.name`, or `user.name`, from the files of your configuration. A name that only `git -c` or the environment (GIT_CONFIG_COUNT, GIT_COMMITTER_NAME) gives to a `start` is kept, as if it were this setting, until another `start` gets one, or `clear`. Neither `git -c` at other commands nor GIT_AUTHOR_NAME changes the author, so that it does not matter which process lands a commit"},
	{"airlock.email", "promote approve", "yours", "the author's e-mail address on landed commits, by the same rules. An address that only GIT_COMMITTER_EMAIL or EMAIL has is kept, too"},
}

// GitSettings lists settings that have the same form and meaning as git's settings for its own commands.
var GitSettings = []Setting{
	{"advice.airlock", "", "`true`", "`false`: print no hints"},
	{"color.airlock", "", "`color.ui`", "`auto`, `always` or `never`: use of colours; the variable NO_COLOR turns `auto` off"},
	{"pager.airlock.<command>", "", "`log`, `list`, `checkpoint`, `compare`, `events`, `execs`, `inspect`, `net`, `policy`, `report`, `runs` and `scan`: `true`", "whether the command's output goes through a pager, or the pager to use; `GIT_PAGER` has priority over it"},
}

// files lists the files and refs of an airlock.
var files = []Explained{
	{".<word>-<4 hex digits>/", "the workspace, at the top of the work tree"},
	{"coding-environment.toml", "the recipe, which describes the agent's environment; committed; see git-airlock-recipe(7)"},
	{".env", "your variables; the agent gets those that the recipe or `--env` names"},
	{"$GIT_COMMON_DIR/airlock/<id>/", "the airlock's files on the host: state, quarantine, journal, checkpoints, the event log, the daemon's lock and log"},
	{"$GIT_COMMON_DIR/airlock-checks-<uid>", "the results of the checks that you have run here, up to 512 KiB; without the file, they run again"},
	{"refs/airlock/runs/<session>/<n>", "the record of a run, see git-airlock-runs(1)"},
	{"refs/airlock/<id>/base", "the outer commit of which the snapshot was taken"},
	{"refs/airlock/<id>/promoted", "the last outer commit that the airlock landed"},
	{"refs/airlock/<id>/pending", "commits that wait: `git log -p --diff-merges=first-parent ..airlock/<id>/pending`"},
	{"refs/airlock/<id>/ops", "the landings, undos and redos: `git airlock log --ops`"},
	{"refs/airlock/policy", "the team's policy"},
	{"refs/notes/airlock", "notes on the origin of landed commits"},
	{"refs/notes/airlock-review", "verdicts on commits, one JSON object a line"},
	{"refs/notes/airlock-evidence", "signed statements about landed commits, one a line: `git airlock help verify`"},
	{"refs/notes/airlock-egress", "notes on what the prison reached before landed commits: `git airlock help net`"},
	{"refs/notes/airlock-check", "the results of checks for people, one JSON object a line: `git airlock help check`"},
	{"refs/airlock/fetched/", "notes of a remote, while `git airlock fetch` merges them"},
}

// StatusFields lists the fields of status --json, in their order.
var StatusFields = []Explained{
	{"version", "1; this number changes when a field changes its meaning, but not when a field is added"},
	{"session", "an id of the airlock, the same from `start` to `clear`"},
	{"branch", "the outer branch"},
	{"state", "`running`, `stopped` or `broken` (the prison is gone; `git airlock start` makes a new one). `none` (no airlock in this worktree): `version` is then the only other field, and the exit status is 4"},
	{"backend", "the backend that made the prison: `native` or `docker`"},
	{"backend_reason", "why this backend was chosen"},
	{"image", "the name of the container image, as `start` took it; empty without an image"},
	{"image_id", "the id of the image from which the prison was made last, which a later start keeps if its name gets another image; empty without an image"},
	{"id", "the airlock's id, four hexadecimal digits"},
	{"workspace", "the path of the workspace's folder: from the top of the work tree, or absolute with `airlock.workspace=gitdir`"},
	{"uid", "the user id that the agent runs as"},
	{"base", "the outer commit of which the snapshot was taken"},
	{"promoted", "the last outer commit that the airlock landed; the base if none has landed"},
	{"inner_tip", "the tip of the inner branch main; empty if there is none"},
	{"daemon", "whether the daemon is `running`, and its process id `pid`: 0 if it does not run, or if it cannot be seen from here"},
	{"command", "null, or the command that `start -- COMMAND` launched: `argv`, its `state`, which is `running` or `exited`, `exit`, its exit status, null while it runs, and `again`, the command that launches it again after it has exited"},
	{"hold", "the first of `holds`, or null"},
	{"holds", "a list of the reasons why commits do not land: the `reason`, a word from the section HOLDS, the `paths` concerned, a `message`, the commands to type `next`, and `since`, the time when it began"},
	{"review", "the `mode` of the review (`off`, `land` or `push`), and the numbers of commits `waiting` for a verdict, `approved` and not landed, `asked` for a fix, `rejected`, `undone` and `blocked`. With the mode `off`, waiting commits land by themselves"},
	{"pending", "the number of commits that have not landed yet"},
	{"uncommitted", "the number of paths that the agent has changed but not committed, in the workspace and in `places`"},
	{"places", "a list of the agent's other worktrees, and of repositories of its own in the workspace, with work that `clear` would lose, and of files and folders that may hide such work: the `path`, which is absolute outside the workspace, whether it is a `repository` of its own, the number of `uncommitted` paths and of `commits` that neither the workspace nor a server has, `unread`, whether the work cannot be counted, and `hidden`, which is empty for a worktree or a repository, `closed` for a folder or a file of git that the agent itself may not read, `autostash` for the file that names the stash of an unfinished rebase or merge, and `submodule` for a folder of a submodule that has files but no repository, whose files git does not commit. The last three have no counts. An empty `path` stands for all places that were not searched, because that took too long or failed, or that come after two hundred others"},
	{"waiting", "a list of inner refs other than main that have commits of their own: the `ref` and the number of `commits`. Beyond fifty refs, `ref` is `other refs`"},
	{"landed", "the number of commits that have landed since the airlock was made"},
	{"flagged", "a list of landed commits that a rule flagged: the `commit` and the `rules`"},
	{"rebased", "a list of the newest commits of the agent that landed before the agent rebased them without commits that were left out, so that nothing of them lands again: the new commit `inner`, the landed `commit`, and its `subject`"},
	{"last_landed_at", "when the last commit landed, or null"},
	{"landing_since", "when the landing that is at work began, if it takes longer than ten seconds; otherwise absent"},
	{"failure", "the error, if promotion fails; otherwise absent"},
	{"ended", "why the watchdog stopped a `broken` prison, such as a full disk, also after there is room again; otherwise absent"},
	{"setup_failure", "the message of the service or startup command that failed last, until it has run; otherwise absent"},
	{"syncing", "whether a `sync` is running, or was interrupted and is not finished"},
	{"sync_waits", "whether a `sync` waits until no work of the agent is in the way"},
	{"isolation", "the isolation of the prison: `network`, `lockdown`, which `git airlock net lockdown` sets, `runtime`, the `limits` `memory`, `cpus` and `pids`, and `weaker`, a list of sentences on the measures that are missing here, and on denials that an open network does not hold for addresses"},
	{"refusals", "a list of hosts that the network refused in the last hour and would still refuse: the number `seq` of the last record, the `host`, `port` and `reason`, how often (`count`), the `time`, the commands to type `next`, the narrowest first, and the agent that works without the host (`unneeded_by`)"},
	{"more_refusals", "the number of further hosts, at most 95, since `refusals` has five"},
	{"refused_credentials", "a list of the credentials whose value a server refused last, or whose server failed or answered nothing last, or the network has `lost`, or whose limit is used up, also of a stopped airlock, as in `net --json`: the `name`, the `source`, the `hosts`, the `variables` with the placeholder, whether the network has the `value`, the number of `requests` and the time of the `last`, `refused`, the `status` of the answer, the `limit` of requests a day, the `problem`, why the value cannot be read now, and `silent_seconds`, the number of seconds for which the server has answered nothing, from 30 on"},
	{"failing_proxy", "null, or the proxy of `airlock.upstreamProxy` if the last connection through it failed: its URL `proxy` without the password, the `reason`, which begins with the cause, the `target` of the connection, the `time`, and the commands to type `next`"},
	{"refused_certificate", "null, or the last connection of the last hour whose program did not accept the network's certificate, until one to the same host works: the number `seq` of its record, the `host`, `port` and `reason`, the `time`, and the commands to type `next`"},
}

// trailers lists the trailers of a note in refs/notes/airlock.
var trailers = []Explained{
	{"Airlock-Version", "1"},
	{"Airlock-Commit", "the landed commit; if it is a different commit, an amend or a rebase copied the note"},
	{"Airlock-Session", "the session of the airlock that landed the commit"},
	{"Airlock-Inner-Commit", "the agent's commit"},
	{"Airlock-Inner-Author", "the name that the agent was given"},
	{"Airlock-Base", "the commit of which the snapshot was taken"},
	{"Airlock-Backend", "the backend that made the prison"},
	{"Airlock-Isolation", "runtime, network and user id"},
	{"Airlock-Tree", "exact: the agent's tree; merged: merged with your commits or excluded files, or without commits that were left out"},
	{"Airlock-Policy", "clean, or the rules that flagged the commit or were accepted for it"},
	{"Airlock-Without", "an earlier inner commit whose change this commit does not have, because it is held or was dropped"},
	{"Airlock-Supersedes", "a landed commit that this commit undoes, because the agent amended or reset it"},
	{"Airlock-Landed-At", "when the commit landed"},
}

// holdsExplained explains the given reasons, in their order.
func holdsExplained(reasons []string) []Explained {
	var all []Explained
	for _, reason := range reasons {
		all = append(all, Explained{reason, HoldReasons[reason]})
	}
	return all
}

func settingsExplained(of []Setting) []Explained {
	var all []Explained
	for _, s := range of {
		text := s.Text
		if s.Otherwise != "" {
			text = fmt.Sprintf("%s; default: %s", s.Text, s.Otherwise)
		}
		all = append(all, Explained{s.Key, text})
	}
	return all
}
