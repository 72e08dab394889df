package identity

import (
	"errors"
	"os"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// User is the author and committer of landed commits.
type User struct{ Name, Mail string }

// String returns the user as a commit shows it: "Name <mail>".
func (u User) String() string { return u.Name + " <" + u.Mail + ">" }

// ErrNoUser reports that no name, or no mail address, is configured.
var ErrNoUser = errors.New("no identity to land commits with")

// ResolveUser returns the user's identity. Name and address are looked up independently: first airlock.name and airlock.email, then git's
// choice of an author (git-var(1), GIT_AUTHOR_IDENT): GIT_AUTHOR_NAME and GIT_AUTHOR_EMAIL from the environment, author.*, user.*, EMAIL.
// Neither is guessed from the login or the host's name, as with user.useConfigOnly. If one of them is empty, the error is [ErrNoUser].
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

// authorField looks up the name or the address. As in git's ident.c, an empty airlock.* or author.* counts as unset,
// and an empty variable or user.* counts as a value.
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

// withoutCrud removes the characters that git removes from a name or an address before it writes a commit (ident.c,
// strbuf_addstr_without_crud): crud at both ends, and characters inside that would break the commit's line.
func withoutCrud(text string) string {
	for text != "" && isCrud(text[0]) {
		text = text[1:]
	}
	for text != "" && isCrud(text[len(text)-1]) {
		text = text[:len(text)-1]
	}
	return strings.NewReplacer("\n", "", "<", "", ">", "").Replace(text)
}

// isCrud reports whether git 2.39 counts a character as crud. Newer versions keep a dot at the end, as in "Jr.". The
// strictest version is used so that landed commits do not depend on the installed git.
func isCrud(c byte) bool { return c <= ' ' || strings.IndexByte(`.,:;<>"\'`, c) >= 0 }
