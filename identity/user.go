package identity

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// User is the author and committer of landed commits.
type User struct{ Name, Mail string }

// String returns the user as a commit shows it: "Name <mail>".
func (u User) String() string { return u.Name + " <" + u.Mail + ">" }

// ErrNoUser reports that no name, or no mail address, is configured.
var ErrNoUser = errors.New("no identity to land commits with")

// ResolveUser returns the user's identity. Name and address are looked up independently: first airlock.name and airlock.email, then as git
// does for an author (git-var(1), GIT_AUTHOR_IDENT) author.* and user.*. If the configuration has none, GIT_COMMITTER_NAME,
// GIT_COMMITTER_EMAIL and EMAIL count. GIT_AUTHOR_NAME and GIT_AUTHOR_EMAIL do not: git sets them for the hooks of a commit, which may have
// another author. Nothing is guessed from the login or the host's name, as with user.useConfigOnly. If name or address is empty, the error is
// [ErrNoUser].
func ResolveUser(c gitops.Config) (User, error) {
	u := resolve(c, environment())
	if u.Name != "" && u.Mail != "" {
		return u, nil
	}
	for _, name := range []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL"} {
		if os.Getenv(name) != "" {
			return User{}, fmt.Errorf("%w in the configuration (%s is for single commits of your own)", ErrNoUser, name)
		}
	}
	return User{}, ErrNoUser
}

// environment returns the identity that the environment of this process has.
func environment() User {
	return User{Name: os.Getenv("GIT_COMMITTER_NAME"), Mail: cmp.Or(os.Getenv("GIT_COMMITTER_EMAIL"), os.Getenv("EMAIL"))}
}

// resolve looks up name and address. It takes what no setting has from otherwise.
func resolve(c gitops.Config, otherwise User) User {
	return User{Name: withoutCrud(authorField(c, "name", otherwise.Name)), Mail: withoutCrud(authorField(c, "email", otherwise.Mail))}
}

// authorField looks up the name or the address. As in git's ident.c, an empty airlock.* or author.* counts as unset, and an empty user.*
// counts as a value.
func authorField(c gitops.Config, key, otherwise string) string {
	for _, section := range sections[:2] {
		if value := c.String(section+key, ""); value != "" {
			return value
		}
	}
	return c.String(sections[2]+key, otherwise)
}

// sections are the beginnings of the keys of an identity, in their order.
var sections = []string{"airlock.", "author.", "user."}

// Lasting returns the settings without an identity of the current command alone, from "git -c" or GIT_CONFIG_COUNT. The identity of landed
// commits must not depend on which process lands them: the daemon, or a command with another environment.
func Lasting(settings []gitops.Setting) gitops.Config {
	return gitops.ConfigOf(slices.DeleteFunc(slices.Clone(settings), func(s gitops.Setting) bool {
		return s.Scope == "command" && slices.ContainsFunc(sections, func(section string) bool { return s.Key == section+"name" || s.Key == section+"email" })
	}))
}

// Given returns the parts of the identity that no file of the configuration has, but "git -c" or the environment, as airlock.name and
// airlock.email. An airlock keeps them from its start on.
func Given(settings []gitops.Setting) gitops.Config {
	given := gitops.Config{}
	now, lasting := resolve(gitops.ConfigOf(settings), environment()), resolve(Lasting(settings), User{})
	if now.Name != "" && now.Name != lasting.Name {
		given["airlock.name"] = now.Name
	}
	if now.Mail != "" && now.Mail != lasting.Mail {
		given["airlock.email"] = now.Mail
	}
	return given
}

// withoutCrud removes the characters that git removes from a name or an address before it writes a commit (ident.c,
// strbuf_addstr_without_crud): crud at both ends, and characters inside that would break the commit's line.
func withoutCrud(text string) string {
	return strings.NewReplacer("\n", "", "<", "", ">", "").Replace(strings.TrimFunc(text, isCrud))
}

// isCrud reports whether git 2.39 counts a character as crud. Newer versions keep a dot at the end, as in "Jr.". The
// strictest version is used so that landed commits do not depend on the installed git.
func isCrud(c rune) bool { return c <= ' ' || strings.ContainsRune(`.,:;<>"\'`, c) }
