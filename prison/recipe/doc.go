// Package recipe reads what an environment to work in is made of.
//
// A repository says so in the file coding-environment.toml at its top:
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
//	[startup]
//	commands = ["make prepare"]       # as the agent, one after the other
//
//	[prestart]
//	commands = ["redis-server"]       # as the agent, in the background
//
//	[env]
//	pass = ["NPM_TOKEN"]              # of the host's, if its user consents
//
//	[env.set]
//	GOFLAGS = "-mod=mod"
//
// [Parse] reads a [Recipe] and refuses what it does not know, [Marshal] writes one. Whoever can commit can change
// a recipe, so it is read as something hostile: what it says ends up in a Dockerfile, in shells and on terminals.
//
// # Images
//
// The recipe counts as it is in the snapshot's tree, or at the tip of the branch when an airlock
// resumes: a recipe that nobody else has would make an environment that nobody else has. A generated
// Dockerfile goes to the engine's classic builder, which needs no session and is there from Docker
// 20.10 on, in Podman as well. The image's name is the SHA-256 of the Dockerfile, the ids of the
// images it starts from, and the copied files. The phantom's number is not in it, so one image serves
// all airlocks: the prison writes accounts into its own /etc, and replaces the image's user (65532).
//
// Languages come by apt ("system") or by mise into /opt/mise, with links in /usr/local/bin. Mise's
// shims would obey a mise.toml or .tool-versions of the workspace.
//
// An image gets its name when it is complete. It is built before other commands are locked out, and if
// the branch has another recipe by then, start refuses. The images of a failed build's steps are
// removed. The engine leaves a container that was made when the build was cancelled and had not
// started; a host name that only the steps of the build get identifies it, as a label would be in the
// image. Tools are checked in the prison, where PATH, --tool and --rootfs decide.
//
// # Consent
//
// Consent is a SHA-256 in the repository's git configuration: plain, visible, revoked with an editor.
// It is that of the recipe's file, and with a Dockerfile that of a list of everything that goes in. A
// Dockerfile that copies everything asks again after each commit; the rule "recipe" then holds the
// Dockerfile alone. A recipe without consent is refused, since its author wants it. A devcontainer was
// written for editors and is in many repositories: without consent it is ignored, with a message.
//
// Three repositories (Go, Python, Node) take 5.5 minutes from the clone to the landed commit when
// three images are built, and 45 s when they exist; native, Python and Node take 6 s and Go 40
// (scripts/try-languages).
package recipe
