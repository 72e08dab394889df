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
package recipe
