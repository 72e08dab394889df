package ledger

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
)

// TestFormer checks that an id which a commit had before it was built again stands for the commit, and that no id stands for another one
// than that which is pending.
func TestFormer(t *testing.T) {
	t.Parallel()
	dir, base := t.TempDir(), Pair{Inner: name("0"), Outer: name("1")}
	l, err := Read(dir, base, base.Outer, "")
	if err = errors.Join(err, l.SetTail([]Pair{{Inner: name("a"), Outer: name("2")}, {Inner: name("b"), Outer: name("3")}, {Inner: name("c"), Outer: name("4")}})); err != nil {
		t.Fatal(err)
	}
	if id := l.Former(name("3")); id != "" {
		t.Errorf("of a pending commit: %s", id)
	}
	// b is rejected: c gets another id, and then a third one.
	for _, outer := range []string{"5", "6"} {
		if err := l.SetTail([]Pair{{Inner: name("a"), Outer: name("2")}, {Inner: name("c"), Outer: name(outer)}}); err != nil {
			t.Fatal(err)
		}
	}
	for outer, want := range map[string][2]string{"2": {"", "2"}, "3": {"b", "3"}, "4": {"c", "6"}, "5": {"c", "6"}, "6": {"", "6"}, "9": {"", "9"}} {
		inner := strings.Repeat(want[0], 40)
		if l.Former(name(outer)) != gitops.OID(inner) || l.Now(name(outer)) != name(want[1]) {
			t.Errorf("%s: %s, %s", outer, l.Former(name(outer)), l.Now(name(outer)))
		}
	}
	// An id that is pending again stands for what it is now. One that stood for two commits, or in a torn line, stands for none.
	if err := l.SetTail([]Pair{{Inner: name("d"), Outer: name("4")}, {Inner: name("e"), Outer: name("5")}}); err != nil {
		t.Fatal(err)
	}
	if err := l.SetTail(nil); err != nil || l.Former(name("4")) != "" || l.Former(name("6")) != name("c") || l.Former("") != "" {
		t.Errorf("%v, 4: %s, 6: %s", err, l.Former(name("4")), l.Former(name("6")))
	}
	file, torn := formerFile(dir), string(name("7"))+" "+string(name("a"))+" exact"
	if err := os.WriteFile(file, []byte("\n1 2 3\n"+torn), 0o600); err != nil || l.Former(name("7")) != "" {
		t.Errorf("%v, torn: %s", err, l.Former(name("7")))
	}
	// The file stays small.
	if err := os.WriteFile(file, []byte(torn+strings.Repeat("\n", formerKept+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	l.keepFormer([]Pair{{Inner: name("f"), Outer: name("8")}})
	if info, err := os.Stat(file); err != nil || info.Size() > 100 || l.Former(name("8")) != name("f") || l.Former(name("7")) != name("a") {
		t.Errorf("%v, %v", info, err)
	}
}
