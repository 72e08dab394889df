package egress

import (
	"fmt"
	"io"
	"net/netip"
	"testing"
)

// memory is a file in memory.
type memory struct{ content []byte }

func (m *memory) ReadAt(p []byte, offset int64) (int, error) {
	if offset >= int64(len(m.content)) {
		return 0, io.EOF
	}
	n := copy(p, m.content[offset:])
	if n < len(p) {
		return n, io.ErrUnexpectedEOF
	}
	return n, nil
}

func (m *memory) WriteAt(p []byte, offset int64) (int, error) {
	if need := int(offset) + len(p); need > len(m.content) {
		m.content = append(m.content, make([]byte, need-len(m.content))...)
	}
	return copy(m.content[offset:], p), nil
}

func mustLoad(t *testing.T, file NameFile) *names {
	t.Helper()
	n, err := loadNames(file, firstSlot, maxNames)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestNamesKeepTheirAddresses gives addresses to more names than fit, and loads them again several times.
func TestNamesKeepTheirAddresses(t *testing.T) {
	file := &memory{make([]byte, 0, (maxNames+1)*slotSize)}
	n := mustLoad(t, file)
	given := map[netip.Addr]string{}
	first, err := n.address("first.test")
	if err != nil || !synthetic.Contains(first) || first == synthetic.Addr() {
		t.Fatalf("%v, %v", first, err)
	}
	for i := range maxNames + 100 {
		name := fmt.Sprintf("n%d.test", i)
		a, err := n.address(name)
		if err != nil || !synthetic.Contains(a) || n.name(a) != name {
			t.Fatalf("%s: %v, %v, %q", name, a, err, n.name(a))
		}
		given[a] = name
		if i%100 == 0 { // in use all the time
			if again, err := n.address("first.test"); err != nil || again != first {
				t.Fatalf("after %d names the first one has %v, %v", i, again, err)
			}
		}
		if i == 1000 {
			n = mustLoad(t, file)
		}
	}
	if len(given) != maxNames-1 || given[first] != "" {
		t.Errorf("%d addresses; the first one is %q", len(given), given[first])
	}
	again := mustLoad(t, file)
	for a, name := range given {
		if n.name(a) != name || again.name(a) != name {
			t.Fatalf("%v is %q, later %q, loaded %q", a, name, n.name(a), again.name(a))
		}
	}
	if again.name(first) != "first.test" {
		t.Errorf("the first name is %q", again.name(first))
	}
}

// TestUnassignedAddresses checks that an address that stands for no name has none.
func TestUnassignedAddresses(t *testing.T) {
	n := mustLoad(t, &memory{})
	for _, a := range []string{"198.18.0.0", "198.18.0.1", "198.19.255.254", "192.0.2.1", "::1"} {
		if got := n.name(netip.MustParseAddr(a)); got != "" {
			t.Errorf("%s is %q", a, got)
		}
	}
}

func FuzzLoadNames(f *testing.F) {
	whole := &memory{}
	n, err := loadNames(whole, firstSlot, maxNames)
	if err != nil {
		f.Fatal(err)
	}
	n.address("a.test")
	n.address("b.test")
	f.Add(whole.content)
	f.Fuzz(func(t *testing.T, content []byte) {
		n, err := loadNames(&memory{content}, firstSlot, maxNames)
		if err != nil {
			return // cut
		}
		a, err := n.address("c.test")
		if err != nil || n.name(a) != "c.test" {
			t.Errorf("%v, %v, %q", a, err, n.name(a))
		}
	})
}
