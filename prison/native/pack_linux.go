package native

import (
	"strings"

	"github.com/git-airlock/git-airlock/prison"
)

// JSON holds text only, but arguments, paths and environments are bytes. They travel with
// every byte as the character of that number.

func pack(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
}

func unpack(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteByte(byte(r))
	}
	return b.String()
}

func packAll(list []string) []string   { return each(list, pack) }
func unpackAll(list []string) []string { return each(list, unpack) }

func each(list []string, f func(string) string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = f(s)
	}
	return out
}

func packSpec(s prison.Spec) prison.Spec   { return eachOfSpec(s, pack) }
func unpackSpec(s prison.Spec) prison.Spec { return eachOfSpec(s, unpack) }

func eachOfSpec(s prison.Spec, f func(string) string) prison.Spec {
	for _, field := range []*string{&s.ID, &s.Dir, &s.Workspace, &s.User, &s.Hostname, &s.Root} {
		*field = f(*field)
	}
	s.Env = each(s.Env, f)
	tools := make([]prison.Tool, len(s.Tools))
	for i, t := range s.Tools {
		tools[i] = prison.Tool{Name: f(t.Name), Path: f(t.Path)}
	}
	s.Tools = tools
	return s
}

func (q request) pack() request   { return q.each(pack) }
func (q request) unpack() request { return q.each(unpack) }

func (q request) each(f func(string) string) request {
	q.Argv, q.Env, q.Paths, q.Dir = each(q.Argv, f), each(q.Env, f), each(q.Paths, f), f(q.Dir)
	return q
}
