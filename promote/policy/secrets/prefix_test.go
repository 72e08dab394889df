package secrets

import (
	"bytes"
	"testing"
)

// TestPrefixes checks the literal prefixes of some rules, and the number of token bytes behind them.
func TestPrefixes(t *testing.T) {
	for rule, want := range map[string]struct {
		prefixes, run int // minimum
	}{"github-pat": {1, 40}, "jwt": {1, 19}, "aws-access-token": {2, 4}, "private-key": {1, 10}, "vault-service-token": {2, 26}, "stripe-access-token": {2, 10}} {
		r := ruleOf(t, rule)
		b := r.begin()
		if b == nil || len(b.prefixes) < want.prefixes || b.run < want.run {
			t.Errorf("%s: %+v, want %+v", rule, b, want)
		}
	}
	if a := ruleOf(t, "generic-api-key").value(); a == nil || a.run != 10 || !a.mixed {
		t.Errorf("generic-api-key: %+v", a)
	}
	if b := ruleOf(t, "generic-api-key").begin(); b != nil {
		t.Errorf("generic-api-key begins with %+v", b)
	}
}

func ruleOf(t *testing.T, id string) *rule {
	t.Helper()
	for _, r := range Default().rules {
		if r.id == id {
			return r
		}
	}
	t.Fatalf("no rule %s", id)
	return nil
}

// plain returns the detector without the shortcuts. It tries every rule at each of its keywords.
func plain() *Detector {
	d := *Default()
	d.rules = nil
	for _, r := range Default().rules {
		same := *r
		same.begin, same.value = func() *matchStart { return nil }, func() *assigned { return nil }
		d.rules = append(d.rules, &same)
	}
	return &d
}

// FuzzShortcuts looks for a secret that is found only without the shortcuts.
func FuzzShortcuts(f *testing.F) {
	for _, text := range samples {
		f.Add([]byte(text))
		f.Add([]byte("key = " + text + ", token: " + text))
	}
	f.Add([]byte(`"api_key":"==a1b2c3d4e5f6","secret" => 'Zm9vYmFyYmF6cXV4MTIz'`))
	slow := plain()
	f.Fuzz(func(t *testing.T, text []byte) {
		fast := map[Match]bool{}
		for _, m := range Default().Find("a.txt", text) {
			fast[m] = true
		}
		for _, m := range slow.Find("a.txt", text) {
			if !fast[m] {
				t.Errorf("only without shortcuts: %+v", m)
			}
		}
	})
}

// FuzzNear looks for a secret in a part of a text that is found only when the whole text is searched.
func FuzzNear(f *testing.F) {
	for _, text := range samples {
		f.Add([]byte("a\n"+text+"\nb\n"+text+"\n"), 1, 1)
		f.Add([]byte(text+"\nkey = "+text+"\n"), 0, 2)
	}
	f.Fuzz(func(t *testing.T, text []byte, from, count int) {
		lines := bytes.SplitAfter(text, []byte("\n"))
		if from < 0 || count < 1 || from >= len(lines) || count > len(lines)-from {
			t.Skip("no such lines")
		}
		begin := len(bytes.Join(lines[:from], nil))
		near := []Part{{begin, begin + len(bytes.Join(lines[from:from+count], nil))}}
		if near[0].To == near[0].From {
			t.Skip("an empty part")
		}
		counts := func(m Match) bool { return m.Line <= from+count && m.Last > from }
		found := map[Match]bool{}
		for _, m := range Default().FindNear("a.txt", text, near, counts) {
			found[m] = true
		}
		all := Default().FindNear("a.txt", text, nil, counts)
		for _, m := range all {
			if !found[m] {
				t.Errorf("not found near: %+v", m)
			}
		}
		if len(found) > len(all) {
			t.Errorf("found near: %v, in all: %v", found, all)
		}
	})
}
