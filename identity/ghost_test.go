package identity

import (
	"encoding/json"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// loginPattern is shadow's rule for login names (useradd(8), CAVEATS), without names that only some systems allow.
	loginPattern = regexp.MustCompile(`^[a-z][a-z0-9]{0,31}$`)
	hostPattern  = regexp.MustCompile(`^[a-z]+[0-9]{2}$`)
	namePattern  = regexp.MustCompile(`^[A-Z][a-z]+ [A-Z][a-z]+$`)
	mailPattern  = regexp.MustCompile(`^[a-z]+(?:[._][a-z]+)?[0-9]{2}@example\.(?:com|net|org)$`)
)

// telling are words that must not be readable inside a prison.
var telling = []string{"airlock", "prison", "jail", "sandbox", "container", "docker", "agent", "ghost", "phantom", "inner", "guest"}

func mustNotTell(t *testing.T, shown string) {
	t.Helper()
	for _, word := range telling {
		if strings.Contains(strings.ToLower(shown), word) {
			t.Errorf("%q holds %q", shown, word)
		}
	}
}

func TestGhosts(t *testing.T) {
	seen := make(map[Ghost]bool)
	hosts := make(map[string]bool)
	for range 1000 {
		g := NewGhost()
		seen[g], hosts[g.Hostname()] = true, true
		if !namePattern.MatchString(g.Name) || !mailPattern.MatchString(g.Mail) {
			t.Errorf("ghost %q does not look like a person", g)
		}
		if a, err := mail.ParseAddress(g.String()); err != nil || a.Name != g.Name || a.Address != g.Mail {
			t.Errorf("%q reads as %v, %v", g, a, err)
		}
		if withoutCrud(g.Name) != g.Name || withoutCrud(g.Mail) != g.Mail {
			t.Errorf("git would change %q", g)
		}
		if !loginPattern.MatchString(g.Login()) {
			t.Errorf("login %q of %q", g.Login(), g)
		}
		if h := g.Hostname(); !hostPattern.MatchString(h) || h != g.Hostname() {
			t.Errorf("host name %q, then %q", h, g.Hostname())
		}
		mustNotTell(t, g.String()+" "+g.Login()+" "+g.Hostname())
	}
	if len(seen) < 990 {
		t.Errorf("only %d of 1000 ghosts are distinct", len(seen))
	}
	if len(hosts) < 300 {
		t.Errorf("only %d host names in 1000 ghosts", len(hosts))
	}
}

// TestLoginsAreUnused tries every combination of names. If a login already exists on common systems, the agent would have another
// account's name.
func TestLoginsAreUnused(t *testing.T) {
	system := strings.Fields(`root daemon bin sys sync games man lp mail news uucp proxy backup list irc gnats
		nobody operator systemd messagebus sshd tss polkitd avahi colord sudo adm wheel staff users input
		render kvm docker git postgres mysql redis nginx apache www ftp ntp chrony dnsmasq halt shutdown dev`)
	for _, first := range firstNames {
		for _, last := range lastNames {
			login := Ghost{Name: first + " " + last}.Login()
			if !loginPattern.MatchString(login) || slices.Contains(system, login) {
				t.Errorf("login %q of %s %s", login, first, last)
			}
		}
	}
}

// TestNamesAreUnique checks that no list of names has an entry twice.
func TestNamesAreUnique(t *testing.T) {
	for name, list := range map[string][]string{
		"first": firstNames, "last": lastNames, "host": hostWords, "workspace": workspaceWords, "domain": mailDomains,
	} {
		if sorted := slices.Sorted(slices.Values(list)); len(slices.Compact(sorted)) != len(list) {
			t.Errorf("%s names hold one twice", name)
		}
		mustNotTell(t, strings.Join(list, " "))
	}
	if len(firstNames) < 60 || len(lastNames) < 60 || len(workspaceWords) < 60 {
		t.Error("a list is short")
	}
}

func TestLogin(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"Anna Keller", "akeller"},
		{"Anna Maria Keller", "amkeller"},
		{"Keller", "keller"},
		{"", "dev"},
		{"42 7", "dev"},
		{"7of 9th Nine", "nine"},
		{"Zoë O'Brien", "zobrien"},
		{"- -", "dev"},
		{"A " + strings.Repeat("b", 64), "a" + strings.Repeat("b", 31)},
	} {
		if got := (Ghost{Name: c.name}).Login(); got != c.want {
			t.Errorf("login of %q: %q, want %q", c.name, got, c.want)
		}
	}
}

func FuzzLogin(f *testing.F) {
	f.Add("Anna Keller", "a@example.com")
	f.Add("4İ K", "")
	f.Fuzz(func(t *testing.T, name, mail string) {
		g := Ghost{name, mail}
		if !loginPattern.MatchString(g.Login()) {
			t.Errorf("login of %q: %q", name, g.Login())
		}
		if !hostPattern.MatchString(g.Hostname()) {
			t.Errorf("host name of %q: %q", g, g.Hostname())
		}
	})
}

func TestGhostMentions(t *testing.T) {
	g := Ghost{"Anna Keller", "kellera71@example.org"}
	for word, want := range map[string]bool{
		"": false, "anna": true, "KELLER": true, "akeller": true, "kellera": true, "anna keller": true,
		"bob": false, g.Hostname(): true, strings.TrimRight(g.Hostname(), "0123456789"): true,
	} {
		if got := g.mentions([]string{word}); got != want {
			t.Errorf("mentions %q: %v", word, got)
		}
	}
}

func TestGhostAvoidsTheUser(t *testing.T) {
	t.Setenv("USER", "anna")
	t.Setenv("SUDO_USER", "keller")
	for range 2000 {
		if g := NewGhost(); g.mentions([]string{"anna", "keller"}) {
			t.Fatalf("ghost %q of users anna and keller", g)
		}
	}
	t.Setenv("USER", "e") // a part of every ghost, so NewGhost must give up
	if NewGhost() == (Ghost{}) {
		t.Error("no ghost")
	}
}

func TestGhostJSON(t *testing.T) {
	got, err := json.Marshal(Ghost{"Anna Keller", "a@example.com"})
	if want := `{"name":"Anna Keller","mail":"a@example.com"}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
}
