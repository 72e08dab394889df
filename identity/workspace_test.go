package identity

import (
	"regexp"
	"testing"
	"time"
)

func TestWorkspaceNames(t *testing.T) {
	ids, words := make(map[string]bool), make(map[string]bool)
	for range 1000 {
		name, id, err := WorkspaceName(func(id string) bool { return ids[id] })
		if err != nil || ids[id] {
			t.Fatalf("name %q, id %q, %v", name, id, err)
		}
		ids[id], words[name[:len(name)-5]] = true, true
		if parsed, ok := ParseWorkspaceName(name); !ok || parsed != id {
			t.Errorf("%q parses as %q, %v; its id is %q", name, parsed, ok, id)
		}
		mustNotTell(t, name)
	}
	if len(words) < 50 {
		t.Errorf("only %d words in 1000 names", len(words))
	}
}

func TestWorkspaceNameFindsTheLastID(t *testing.T) {
	name, id, err := WorkspaceName(func(id string) bool { return id != "00ff" })
	if err != nil || id != "00ff" {
		t.Errorf("%q, %q, %v", name, id, err)
	}
	if name, id, err := WorkspaceName(func(string) bool { return true }); err == nil || name != "" || id != "" {
		t.Errorf("all taken: %q, %q, %v", name, id, err)
	}
	if _, _, err := WorkspaceName(nil); err != nil {
		t.Error(err)
	}
}

func TestParseWorkspaceName(t *testing.T) {
	for name, want := range map[string]string{
		".cedar-7f3a": "7f3a", ".a-0000": "0000", ".anyword-beef": "beef",
		"": "", ".": "", "..": "", ".git": "", "cedar-7f3a": "", ".-7f3a": "", ".cedar-7f3": "", ".cedar-7f3aa": "",
		".cedar-7F3A": "", ".Cedar-7f3a": "", ".cedar7f3a": "", ".ce-dar-7f3a": "", ".cedar-7f3a\n": "", ".cedar-7f3a/": "",
		"./cedar-7f3a": "", " .cedar-7f3a": "", ".cedar-7f3g": "", "x\n.cedar-7f3a": "", ".c\u00e9dar-7f3a": "",
	} {
		if id, ok := ParseWorkspaceName(name); id != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", name, id, ok)
		}
	}
}

func FuzzParseWorkspaceName(f *testing.F) {
	for _, seed := range []string{".cedar-7f3a", ".cedar-7f3a\n", "..-0000", ".x-\x00000", ".git"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		id, ok := ParseWorkspaceName(name)
		if !ok {
			if id != "" {
				t.Errorf("%q: id %q beside false", name, id)
			}
			return
		}
		if !regexp.MustCompile(`\A[0-9a-f]{4}\z`).MatchString(id) || len(name) < 7 {
			t.Fatalf("%q: id %q", name, id)
		}
		word := name[1 : len(name)-5]
		if name != "."+word+"-"+id || !regexp.MustCompile(`\A[a-z]+\z`).MatchString(word) {
			t.Errorf("%q is not made of %q and %q", name, word, id)
		}
	})
}

func TestSessionID(t *testing.T) {
	east := time.FixedZone("", 2*60*60)
	now := time.Date(2026, 11, 20, 22, 15, 1, 999, east)
	if got, want := SessionID(now, "7f3a"), "20261120T201501Z-7f3a"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
