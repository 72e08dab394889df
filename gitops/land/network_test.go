package land

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/prison/prisontest"
)

// lfsServer counts the requests of git-lfs and has no objects.
func lfsServer(t *testing.T) (url string, asked *atomic.Int32) {
	asked = new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.Error(w, "none", http.StatusNotFound)
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

// TestLandingAddress lands LFS pointers with a real git-lfs, without the gate. git-lfs must not contact a server that
// a landed .lfsconfig names, only the one that the user had configured before.
func TestLandingAddress(t *testing.T) {
	program, err := exec.LookPath("git-lfs")
	prisontest.Need(t, "lfs", err)
	const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\nsize 5\n"
	names := func(url string) string {
		return "[lfs]\n\turl = " + url + "/x\n[remote \"origin\"]\n\tlfsurl = " + url + "/y\n"
	}
	usual := unshareCommand
	t.Cleanup(func() { unshareCommand = usual })
	for name, c := range map[string]struct {
		user         string   // lfs.url of the user's configuration: "", "user" or "agent"
		base, landed []string // the files .lfsconfig of the base, and of landings after it, by whose server they name
		ours         bool     // the user's server is asked
		link         bool
	}{
		"with the pointer":        {landed: []string{"agent"}},
		"before the pointer":      {landed: []string{"agent", ""}},
		"in the place of another": {base: []string{"user"}, landed: []string{"agent", ""}},
		"as it was":               {base: []string{"user"}, landed: []string{""}, ours: true},
		"overruled":               {user: "user", landed: []string{"agent", ""}, ours: true},
		"led to by a link":        {base: []string{"agent"}, landed: []string{""}, link: true},
	} {
		for _, network := range []string{"namespaces", "no namespaces"} {
			for _, way := range []string{"smudge", "process"} {
				t.Run(strings.Join([]string{name, network, way}, ", "), func(t *testing.T) {
					if unshareCommand = usual; network != "namespaces" {
						unshareCommand = func() []string { return nil }
					}
					agent, theirs := lfsServer(t)
					user, ours := lfsServer(t)
					url := map[string]string{"agent": agent, "user": user}
					w := newWorld(t)
					w.Run("config", "filter.lfs.required", "true")
					w.Run("config", "filter.lfs.clean", program+" clean -- %f")
					w.Run("config", "filter.lfs.smudge", program+" smudge -- %f")
					if way == "process" {
						w.Run("config", "filter.lfs.process", program+" filter-process")
					}
					if c.user != "" {
						w.Run("config", "lfs.url", url[c.user])
					}
					first := gitopstest.Files{".gitattributes": "*.bin filter=lfs\n"}
					for _, whose := range c.base {
						first[".lfsconfig"] = names(url[whose])
						if c.link {
							first["settings"], first[".lfsconfig"] = first[".lfsconfig"], gitopstest.LinkTo+"settings"
						}
					}
					base := w.CommitAll(first)
					tip := base
					for n, whose := range c.landed {
						change := gitopstest.Files{}
						if whose != "" {
							change[".lfsconfig"] = names(url[whose])
						}
						last := n == len(c.landed)-1
						if last {
							change["x.bin"] = pointer
						}
						next := w.Built(tip, change)
						rest()
						l := w.landing(tip, next)
						l.Begun = base
						err := Land(t.Context(), w.Repository, l)
						if !last {
							gitopstest.Check(t, err)
							tip = next
							continue
						}
						var failed *FilterError
						if !errors.As(err, &failed) {
							t.Errorf("the landing ends with %v", err)
						} else if unshareCommand() != nil && !c.ours && name != "with the pointer" && !strings.Contains(err.Error(), "no network for filter lfs") {
							t.Errorf("the landing says %v", err)
						}
					}
					if theirs.Load() > 0 || (ours.Load() > 0) != c.ours {
						t.Errorf("the agent's server was asked %d times, the user's %d times", theirs.Load(), ours.Load())
					}
				})
			}
		}
	}
}

// TestRecoveryAddress covers the moment in which the files of either side of a landing may be in the work tree.
func TestRecoveryAddress(t *testing.T) {
	w := newWorld(t)
	w.Run("config", "filter.lfs.smudge", "git-lfs smudge -- %f")
	old := w.CommitAll(gitopstest.Files{"a": "1"})
	new := w.Built(old, gitopstest.Files{".lfsconfig": "[lfs]\n\turl = x\n"})
	config, err := w.Config(t.Context())
	gitopstest.Check(t, err)
	f, err := filtersOf(t.Context(), w.Repository, nil, config, old, old, new)
	gitopstest.Check(t, err)
	if f.lfs || !slices.Contains(f.config, "lfs.url="+noAddress) {
		t.Errorf("%+v", f)
	}
	if f, err = filtersOf(t.Context(), w.Repository, nil, config, old, old); err != nil || !f.lfs || slices.Contains(f.config, "lfs.url="+noAddress) {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestLFSConfig compares what is read in process with what git prints.
func TestLFSConfig(t *testing.T) {
	w := newWorld(t)
	base := w.CommitAll(gitopstest.Files{"a": "1", "b.lfsconfig": "2", "d/.lfsconfig": "3"})
	look := quarantine.Inspect(t.Context(), w.Git)
	defer look.Close()
	seen := map[string]bool{}
	for _, tree := range []gitopstest.Files{
		{}, {".lfsconfig": "[lfs]\n\turl = x\n"}, {".lfsconfig": gitopstest.LinkTo + "a"}, {".lfsconfig/x": "1"},
	} {
		commit := w.Built(base, tree)
		want, err := lfsConfig(t.Context(), w.Repository, nil, commit)
		gitopstest.Check(t, err)
		if got, err := lfsConfig(t.Context(), w.Repository, look, commit); got != want || err != nil {
			t.Errorf("%v: %q, %v, git prints %q", tree, got, err, want)
		}
		seen[want] = true
	}
	if len(seen) != 4 {
		t.Errorf("different commits look alike: %v", seen)
	}
	missing := gitops.OID(strings.Repeat("1", len(base)))
	if got, err := lfsConfig(t.Context(), w.Repository, look, missing); err == nil {
		t.Errorf("a missing commit has %q", got)
	}
}

// TestNoNamespaces checks that every filter is listed as one with a network if the kernel has no namespaces.
func TestNoNamespaces(t *testing.T) {
	usual := unshareCommand
	defer func() { unshareCommand = usual }()
	unshareCommand = func() []string { return nil }
	config := gitops.Config{"filter.say.smudge": "cat", "filter.lfs.process": "git-lfs filter-process", "filter.off.smudge": ""}
	if got := Reaching(config); !slices.Equal(got, []string{"lfs", "say"}) || len(WithoutNetwork(config)) > 0 {
		t.Errorf("reaching %q, without %q", got, WithoutNetwork(config))
	}
}
