package identity

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"os"
	"os/user"
	"slices"
	"strings"
)

// Ghost is the invented author of inner commits, and the agent's login inside its prison. No such person exists. A
// ghost is made once for each airlock and kept in its record.
type Ghost struct {
	Name string `json:"name"`
	Mail string `json:"mail"`
}

// NewGhost invents a ghost. Its name contains neither the calling user's login and full name nor the host's name, so that a leak test can
// search for these names. If a ghost contains one by chance, NewGhost invents another one.
func NewGhost() Ghost {
	var g Ghost
	hidden := append(UserNames(), HostName())
	// A one-letter login is part of every name, so after enough tries any ghost is accepted.
	for range 100 {
		if g = inventGhost(); !g.mentions(hidden) {
			break
		}
	}
	return g
}

func inventGhost() Ghost {
	first, last := one(firstNames), one(lastNames)
	f, l := strings.ToLower(first), strings.ToLower(last)
	local := one([]string{f + "." + l, f[:1] + l, f + l[:1], f, l + "." + f, f + "_" + l})
	// The two digits look like a year of birth. They also distinguish the addresses of namesakes.
	return Ghost{
		Name: first + " " + last,
		Mail: fmt.Sprintf("%s%d@%s", local, 60+random(40), one(mailDomains)),
	}
}

// mentions reports whether a text derived from the ghost contains one of the words, in upper or lower case.
func (g Ghost) mentions(words []string) bool {
	shown := strings.ToLower(g.String() + " " + g.Login() + " " + g.Hostname())
	return slices.ContainsFunc(words, func(word string) bool { return word != "" && strings.Contains(shown, strings.ToLower(word)) })
}

// HostName returns the host's name without its domain.
func HostName() string {
	host, _ := os.Hostname()
	host, _, _ = strings.Cut(host, ".")
	return host
}

// UserNames returns the login and the full name of the user.
func UserNames() []string {
	names := []string{os.Getenv("USER"), os.Getenv("SUDO_USER")}
	if u, err := user.Current(); err == nil {
		names = append(names, u.Username, u.Name)
	}
	return names
}

// Login returns a login name made from the ghost's name, as in "akeller" for Anna Keller: 1 to 32 characters of a-z and 0-9, the first
// one a letter. useradd(8) accepts such a name everywhere.
func (g Ghost) Login() string {
	words := strings.Fields(g.Name)
	var login string
	for i, word := range words {
		word = loginLetters(word)
		if i < len(words)-1 && word != "" {
			word = word[:1]
		}
		login += word
	}
	login = cmp.Or(strings.TrimLeft(login, "0123456789"), "dev")
	return login[:min(len(login), 32)]
}

func loginLetters(word string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(word))
}

// Hostname returns the name of the ghost's machine, as in "devbox42". It is always the same for one ghost.
func (g Ghost) Hostname() string {
	h := fnv.New64a()
	h.Write([]byte(g.String()))
	n := h.Sum64()
	words := uint64(len(hostWords))
	return fmt.Sprintf("%s%02d", hostWords[n%words], n/words%100)
}

// String returns the ghost as a commit shows it: "Name <mail>".
func (g Ghost) String() string { return g.Name + " <" + g.Mail + ">" }
