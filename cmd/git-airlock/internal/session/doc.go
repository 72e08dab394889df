/*
Package session is the workflow: what it takes to start an airlock on a branch, to resume, run in, promote from, stop and clear
it. It prints nothing and knows no command line. Each call takes values and returns values, or an error of a type that says
what is wrong: an [environment.Refusal] for what waits for the user, a [RequestError] for what nobody could give. What
happens meanwhile is told to a [Reporter].

# The data path

	Request -> resolved -> snapshot.Take -> prison.Backend.Start -> daemon

[Session.Start] resolves a request for the situation that it finds, takes the snapshot while the prison starts, fills the
workspace, and starts the daemon, which promotes what the agent commits. A situation that has changed by the time the
repository is locked is resolved anew.
*/
package session
