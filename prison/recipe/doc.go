// Package recipe reads the description of a development environment.
//
// A repository contains it in the file coding-environment.toml at its top:
//
//	schema_version = 1
//
//	[os]
//	base = "debian:12"                # container image to start from
//	packages = ["make", "libpq-dev"]  # Debian's
//
//	[languages.python]
//	version = "3.12.7"                # exact, or "system" for the distribution's own
//	manager = "uv"
//
//	[agents]
//	claude = "2.1.330"                # exact, in images only
//
//	[startup]
//	commands = ["make prepare"]       # as the agent, one after the other
//
//	[prestart]
//	commands = ["redis-server"]       # as the agent, in the background
//
//	[env]
//	pass = ["NPM_TOKEN"]              # variables of the host, if its user consents
//
//	[env.set]
//	GOFLAGS = "-mod=mod"
//
// [Parse] reads a [Recipe] and refuses unknown keys. [Marshal] writes one, and [Recipe.Dockerfile] describes the image for it. Everybody
// who can commit can change a recipe, so it is treated as hostile input: its values end up in a Dockerfile, in shells and on terminals.
//
// # Images
//
// The recipe is read from the snapshot's tree, or from the tip of the branch when an airlock resumes. A recipe that is not committed would
// make an environment that nobody else has. The engine's classic builder builds a generated Dockerfile. That builder needs no session, and
// is available in Docker 20.10 and later, and in Podman. The image's name is the SHA-256 of the Dockerfile, the ids of the images it starts
// from, and the copied files. It does not depend on the phantom's uid, so one image serves all airlocks: the prison writes accounts into
// its own /etc, and replaces the image's user (65532).
//
// Languages are installed by apt ("system") or by mise into /opt/mise, with links in /usr/local/bin. Mise's own shims
// would obey a mise.toml or .tool-versions of the workspace.
//
// An image gets its name when it is complete. The command start builds it before it locks out other commands, and refuses if the branch has
// another recipe when the build ends. The images of a failed build's steps are removed. If a build is cancelled before a container of it
// has started, the engine leaves that container behind. The container's host name, which only build steps get, identifies it. A label would
// also do so, but would end up in the image. Tools are checked in the prison, where PATH, --tool and --rootfs decide which programs run.
//
// # Consent
//
// Consent is a SHA-256 in the repository's git configuration, where a user can see it, and revoke it with an editor. It is the digest of
// the recipe's file, or, with a Dockerfile, of a list of all files that the build uses. A Dockerfile that copies everything asks for
// consent again after each commit; the promotion rule "recipe" then holds only commits that change the Dockerfile. A recipe without consent
// is refused, since its author wants it to be used. A devcontainer was written for editors, and many repositories have one. Without
// consent, start ignores it, with a message.
//
// Three repositories (Go, Python, Node) take 5.5 minutes from the clone to the landed commit when three images are
// built, and 45 s when the images exist. With the native backend, Python and Node take 6 s and Go takes 40 s
// (scripts/try-languages).
package recipe
