package wire

import (
	"strings"

	"github.com/git-airlock/git-airlock/prison"
)

// Pack turns bytes into text: every byte becomes the character with that number. JSON holds text only, but
// arguments, paths and environments are bytes.
func Pack(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
}

// Unpack undoes [Pack].
func Unpack(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteByte(byte(r))
	}
	return b.String()
}

// PackAll packs each string of a list.
func PackAll(list []string) []string { return each(list, Pack) }

// UnpackAll undoes [PackAll].
func UnpackAll(list []string) []string { return each(list, Unpack) }

func each(list []string, f func(string) string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = f(s)
	}
	return out
}

// PackSpec packs the paths, names and the environment of a spec.
func PackSpec(s prison.Spec) prison.Spec { return eachOfSpec(s, Pack) }

// UnpackSpec undoes [PackSpec].
func UnpackSpec(s prison.Spec) prison.Spec { return eachOfSpec(s, Unpack) }

func eachOfSpec(s prison.Spec, f func(string) string) prison.Spec {
	for _, field := range []*string{&s.ID, &s.Dir, &s.Workspace, &s.User, &s.Hostname, &s.Root} {
		*field = f(*field)
	}
	s.Env, s.Deny = each(s.Env, f), each(s.Deny, f)
	tools := make([]prison.Tool, len(s.Tools))
	for i, t := range s.Tools {
		t.Name, t.Path = f(t.Name), f(t.Path)
		tools[i] = t
	}
	s.Tools = tools
	return s
}

// Pack returns the request with its strings packed.
func (q Request) Pack() Request { return q.each(Pack) }

// Unpack undoes [Request.Pack].
func (q Request) Unpack() Request { return q.each(Unpack) }

func (q Request) each(f func(string) string) Request {
	q.Argv, q.Env, q.Paths, q.Dir = each(q.Argv, f), each(q.Env, f), each(q.Paths, f), f(q.Dir)
	return q
}
