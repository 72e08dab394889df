package manual

import (
	"fmt"
	"strings"
)

// The texts that -h and the manual have in common. Words between backticks are typed as they are.

// Explained is a word and what it means.
type Explained struct{ Word, Text string }

// model says what an airlock is.
var model = []string{
	"The repository of the user is the outer repository. `git airlock start` takes a snapshot of the branch that is checked out, its files " +
		"without its history, into a workspace: a folder that git does not see and that belongs to a user id which no account has. " +
		"It starts a prison in which only that folder exists, and a daemon on the host.",
	"What the agent commits there, on the inner branch main, the daemon takes out through a quarantine, checks against the rules of " +
		"the policy gate, rewrites to the user's name and lands on the outer branch as a fast-forward, exact to the byte, each commit " +
		"with a note in refs/notes/airlock on where it came from.",
	"When a landing would touch the user's changes, or another branch is checked out, the commits are held: they wait as pending, " +
		"`git airlock status` says why and what to type, and landing goes on by itself when the cause is gone.",
}

// ExitStatuses are all that the program ends with; report decides which.
var ExitStatuses = []Explained{
	{"0", "done"},
	{"1", "it went wrong"},
	{"2", "wrong usage or unreadable settings"},
	{"3", "held or refused until you act"},
	{"4", "no airlock here"},
	{"5", "the isolation asked for cannot be provided"},
	{"128+n", "ended by signal n, as by ^C (130)"},
}

// OfCommands is what is different for the commands that run another.
const OfCommands = `"visit" and "run" return the command's own status, 126 if it cannot be executed, 127 if it is not found, and 125 ` +
	`for every failure of their own, in place of 1 to 5; "run" returns 3 if the command succeeded and something is held.`

// exitStatusHelp sums them up.
var exitStatusHelp = func() string {
	var parts []string
	for _, s := range ExitStatuses {
		parts = append(parts, s.Word+" "+s.Text)
	}
	return "Exit status: " + strings.Join(parts, "; ") + ". " + OfCommands
}()

// HoldReasons say why landing waits.
var HoldReasons = map[string]string{
	"operation-in-progress": "a merge, rebase, am, cherry-pick, revert or bisect of yours is not finished",
	"branch-deleted":        "the airlock's branch is gone",
	"branch-switched":       "another branch is checked out here, or the airlock's in another worktree as well",
	"detached-head":         "no branch is checked out",
	"collision":             "a landing would overwrite an untracked, ignored, staged or unstaged change of yours",
	"conflict":              "commits of yours and of the agent's changed the same lines; `git airlock promote --resolve` starts the merge",
	"index-locked":          "another git is at work on the index, or left its lock there",
	"disk-full":             "there is no room, or the disk can only be read",
	"inner-invalid":         "the inner repository did not pass the quarantine's checks",
	"inner-main":            "the inner repository has no branch main",
	"workspace-full":        "the workspace outgrew airlock.maxWorkspace, or the disk ran full, and the prison was stopped",
	"policy":                "a rule of the policy gate holds a commit; see `git airlock policy`",
	"review":                "airlock.autoLand is false, or it was started with --no-auto-land: everything waits for `git airlock promote`",
}

// Setting is a key of git's configuration.
type Setting struct{ Key, Otherwise, Text string }

// Settings are the program's own.
var Settings = []Setting{
	{"airlock.backend", "`auto`", "how the prison is made: `auto`, `native` or `docker`"},
	{"airlock.image", "none", "container image with git and a shell; where an engine answers, `auto` takes `docker` for it"},
	{"airlock.runtime", "the engine's", "container runtime, such as `runsc`"},
	{"airlock.network", "`none`", "what the prison can reach: `none`, or `open`: the internet by IPv4, but no loopback, link-local or private address and no cloud's metadata, see git-airlock-start(1) (native: `apt-get install slirp4netns`)"},
	{"airlock.env", "", "`NAME` of a variable of yours, or `NAME=VALUE`, for the agent's environment; any number of them"},
	{"airlock.tool", "", "`[NAME=]PATH` of a program or folder of yours that the agent may use, read-only, as `/tools/NAME`, on the PATH (of a folder its `bin`, if there is one); all users must be able to read and execute it; at most 32 of them"},
	{"airlock.rootfs", "", "a folder that holds another system than this machine's, with `sh` and `git`, which everybody can read, as debootstrap makes one"},
	{"airlock.recipe", "`true`", "`false`: neither `coding-environment.toml` nor what stands in for it is obeyed (`start --no-recipe`)"},
	{"airlock.consent", "", "SHA-256 of a recipe that may have what it asks for of yours; any number of them, and with a `!` before it what you refused"},
	{"airlock.buildNetwork", "the engine's", "the network that steps of an image's build reach: one of the engine's, `host` or `none`"},
	{"airlock.selftest", "`false`", "`true`: a prison that does not keep what it promises is refused"},
	{"airlock.memory", "`4g`", "memory of the prison"},
	{"airlock.cpus", "`2`", "cores"},
	{"airlock.pids", "`512`", "processes and threads"},
	{"airlock.landingNetwork", "`false`", "`true`: your own filters reach the network while a landing runs them; `git-lfs` does anyway, at the addresses of your configuration, and of `.lfsconfig` as long as that is what it was when the airlock began"},
	{"airlock.keepEnv", "", "names of environment variables that your filters, pagers and signing programs need beside the usual ones (`git airlock doctor` lists those that they do not get); `AWS_*` is all that begin so"},
	{"airlock.autoLand", "`true`", "`false`: everything waits for `git airlock promote` (`start --no-auto-land`)"},
	{"airlock.engine", "`tree`", "`patch`: a commit lands only if `git format-patch | git am` come to its tree, too (`--engine`)"},
	{"airlock.sign", "`false`", "`true`: landed commits carry your signature, made outside as `user.signingKey` and `gpg.format` say"},
	{"airlock.workspace", "`inside`", "`inside`: a hidden folder of the work tree that git ignores; `gitdir`: within `.git`, for tools that stumble over a folder they cannot read"},
	{"airlock.maxWorkspace", "`20g`", "a workspace that is larger, with the agent's home, or that has more than 5,000,000 files and folders stops its prison (hold `workspace-full`); so does a disk that runs full"},
	{"airlock.maxFileSize", "`50m`", "a file above it is held by the rule `large-file`"},
	{"airlock.policy.<rule>", "see `git airlock policy`", "`hold`, `flag` or `off`: what a rule of the gate does"},
	{"airlock.policyFile", "none", "a policy as a team's, for you alone: an absolute path, or one that begins with `~/`"},
	{"airlock.exclude", "", "a pattern as in gitignore(5) of what is left out of snapshots; landed commits keep yours; any number of them"},
	{"airlock.allowSecrets", "`false`", "`true`: a snapshot is taken although there are secrets in it (`start --allow-secrets`)"},
	{"airlock.scan.allow", "", "`[RULE:]PATTERN # REASON`: what `scan` finds in files that match, and the snapshot may take in; any number of them"},
	{"airlock.scan.pattern", "", "`high|medium|low NAME EXPRESSION`: a secret of your own kind, by its text"},
	{"airlock.scan.file", "", "`high|medium|low NAME PATTERN`: the same, by the file's name"},
	{"airlock.limit.*", "see right", "`pack` (`2g`, of its files unpacked as well), `commit` (`1m`), `blob` (`512m`), `path` (4096), `component` (255), `paths` (200000 changed by a commit), `entries` (1000000 files of a commit), `depth` (128), `memory` (`1g`) and `time` (60 seconds) of what reads the export: beyond these nothing is taken out (hold `inner-invalid`). `work` (`2g`, bytes that the rules look at, or as much work) and `check` (300 seconds) for checking one commit: beyond these it is held (rule `budget`)"},
	{"airlock.name", "yours", "who landed commits are by"},
	{"airlock.email", "yours", "who landed commits are by"},
}

// GitSettings are git's, which are obeyed as git obeys its own.
var GitSettings = []Setting{
	{"advice.airlock", "`true`", "`false`: no hints"},
	{"color.airlock", "`color.ui`", "`auto`, `always` or `never`: colours; NO_COLOR turns `auto` off"},
	{"pager.airlock.<command>", "`log`, `list`, `policy` and `scan`: `true`", "a boolean, or the pager for that command's output; `GIT_PAGER` goes before it"},
}

// files are where things are.
var files = []Explained{
	{".<word>-<4 hex digits>/", "the workspace, at the top of the work tree"},
	{"coding-environment.toml", "the recipe: what the agent's environment is made of; committed; see git-airlock-recipe(7)"},
	{".env", "variables of yours; those that the recipe or `--env` name go in"},
	{"$GIT_COMMON_DIR/airlock/<id>/", "what the host knows of an airlock: state, quarantine, journal, the daemon's lock and log"},
	{"refs/airlock/<id>/base", "the outer commit of which the snapshot was taken"},
	{"refs/airlock/<id>/promoted", "the last outer commit that the airlock landed"},
	{"refs/airlock/<id>/pending", "commits that wait: `git log -p ..airlock/<id>/pending`"},
	{"refs/airlock/policy", "the policy of the team"},
	{"refs/notes/airlock", "where landed commits came from"},
}

// StatusFields are those of what status --json prints, in their order.
var StatusFields = []Explained{
	{"version", "1; another number once a field changes its meaning. Fields may be added without that"},
	{"session", "an id of the airlock's, from `start` to `clear`"},
	{"branch", "the outer branch"},
	{"state", "`running`, `stopped` or `broken` (`git airlock start` heals it); `none` where there is no airlock, with `version` alone and exit status 4"},
	{"backend", "what made the prison: `native` or `docker`"},
	{"backend_reason", "why that one"},
	{"id", "the four hexadecimal digits that the airlock goes by"},
	{"workspace", "the name of the workspace's folder"},
	{"uid", "the user id that the agent runs as"},
	{"base", "the outer commit of which the snapshot was taken"},
	{"promoted", "the last outer commit that the airlock landed; before the first, the base"},
	{"inner_tip", "the tip of the inner branch main; empty if there is none"},
	{"daemon", "whether the daemon is `running`, and its process id `pid`: 0 if there is none, or none to be seen from here"},
	{"command", "null, or what `start -- COMMAND` launched: `argv`, its `state`, which is `running` or `exited`, and `exit`, its exit status, null while it runs"},
	{"hold", "the first of `holds`, or null"},
	{"holds", "why landing waits, a list: the `reason`, a word of those under HOLDS, `paths` that it is about, a `message`, commands to type `next`, and `since` when"},
	{"pending", "how many commits are still to land"},
	{"uncommitted", "how many paths the agent has changed and not committed"},
	{"waiting", "other inner refs than main that have commits of their own, a list: `ref` (of more than fifty `other refs`), and how many `commits`"},
	{"landed", "how many commits have landed since the airlock was made"},
	{"flagged", "landed commits in which a rule found something, a list: `commit` and `rules`"},
	{"last_landed_at", "when a commit landed last, or null"},
	{"failure", "why promotion fails; absent if it does not"},
	{"isolation", "of the prison: `network`, `runtime`, the `limits` `memory`, `cpus` and `pids`, and what is `weaker` here, a list of sentences"},
}

// trailers are the lines of a note in refs/notes/airlock.
var trailers = []Explained{
	{"Airlock-Version", "1"},
	{"Airlock-Commit", "the landed commit; another one means that the note was carried along by an amend or a rebase"},
	{"Airlock-Session", "the airlock it came out of"},
	{"Airlock-Inner-Commit", "the agent's commit"},
	{"Airlock-Inner-Author", "the name that the agent was given"},
	{"Airlock-Base", "the commit that the snapshot was taken of"},
	{"Airlock-Backend", "what made the prison"},
	{"Airlock-Isolation", "runtime, network and user id"},
	{"Airlock-Tree", "exact: the agent's tree; merged: with commits of yours"},
	{"Airlock-Policy", "clean, or the rules that flagged the commit or were accepted"},
	{"Airlock-Supersedes", "a landed commit that this one undoes, as the agent had amended or reset it"},
	{"Airlock-Landed-At", "when it landed"},
}

// holdsExplained lists the reasons in the order in which they are named.
func holdsExplained(reasons []string) []Explained {
	var all []Explained
	for _, reason := range reasons {
		all = append(all, Explained{reason, HoldReasons[reason]})
	}
	return all
}

// settingsExplained says the default of each setting with it.
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
