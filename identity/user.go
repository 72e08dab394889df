package identity

import (
	"errors"
	"os"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// User is who landed commits are by: author and committer.
type User struct{ Name, Mail string }

// String is the user as in a commit: "Name <mail>".
func (u User) String() string { return u.Name + " <" + u.Mail + ">" }

// ErrNoUser says that no name, or no mail address, is configured.
var ErrNoUser = errors.New("no identity to land commits with")

// ResolveUser says who the user is: airlock.name and airlock.email, else what git itself takes for an
// author (git-var(1), GIT_AUTHOR_IDENT): GIT_AUTHOR_NAME and GIT_AUTHOR_EMAIL from the environment,
// author.*, user.*, EMAIL. Name and address are looked up independently. It never guesses from the
// login or the host's name, as if user.useConfigOnly were set. Either being empty is [ErrNoUser].
func ResolveUser(c gitops.Config) (User, error) {
	u := User{
		Name: withoutCrud(authorField(c, "name", "GIT_AUTHOR_NAME", "")),
		Mail: withoutCrud(authorField(c, "email", "GIT_AUTHOR_EMAIL", os.Getenv("EMAIL"))),
	}
	if u.Name == "" || u.Mail == "" {
		return User{}, ErrNoUser
	}
	return u, nil
}

// authorField looks up one half of an identity. An empty airlock.* or author.* counts as unset, an
// empty variable or user.* as a value, as in git's ident.c.
func authorField(c gitops.Config, key, variable, otherwise string) string {
	if value := c.String("airlock."+key, ""); value != "" {
		return value
	}
	if value, set := os.LookupEnv(variable); set {
		return value
	}
	if value := c.String("author."+key, ""); value != "" {
		return value
	}
	return c.String("user."+key, otherwise)
}

// withoutCrud strips what git strips from a name or an address before it enters a commit
// (ident.c, strbuf_addstr_without_crud): crud at both ends, and inside what would break the line.
func withoutCrud(text string) string {
	for text != "" && isCrud(text[0]) {
		text = text[1:]
	}
	for text != "" && isCrud(text[len(text)-1]) {
		text = text[:len(text)-1]
	}
	return strings.NewReplacer("\n", "", "<", "", ">", "").Replace(text)
}

// isCrud is git 2.39's crud. Newer versions keep a dot at the end, as in "Jr."; the strictest one
// is taken so that what lands does not depend on the git installed.
func isCrud(c byte) bool { return c <= ' ' || strings.IndexByte(`.,:;<>"\'`, c) >= 0 }
