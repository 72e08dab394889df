package egress

import (
	"container/list"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
)

// synthetic is where the addresses that stand for names are from: RFC 2544, which no public network has.
var synthetic = netip.MustParsePrefix("198.18.0.0/15")

const (
	// maxNames is how many names have addresses that rules allow, maxOthers how many others have.
	maxNames, maxOthers = 1 << 16, 1 << 12
	// slotSize holds a name after its length. An address's slot is at the same place in the file as the address in its network.
	slotSize = 256
	// firstSlot keeps the network's own address free. The others begin with firstOther.
	firstSlot  = 1
	firstOther = firstSlot + maxNames
)

// A NameFile keeps the names of a process for its successor: programs inside remember addresses. It is read and written as
// a whole by one process at a time.
type NameFile interface {
	io.ReaderAt
	io.WriterAt
}

// names gives each name an address of its own, and remembers those that were used last.
type names struct {
	file  NameFile
	first int // slot
	most  int // names

	mu     sync.Mutex
	byName map[string]*list.Element // of slot numbers
	slots  map[int]string
	used   *list.List // the number used last is in front
}

// loadNames reads the names that a process before this one has given addresses to, from a slot on.
func loadNames(file NameFile, first, most int) (*names, error) {
	n := &names{file: file, first: first, most: most, byName: map[string]*list.Element{}, slots: map[int]string{}, used: list.New()}
	buf := make([]byte, slotSize)
	for slot := first; slot < first+most; slot++ {
		if _, err := file.ReadAt(buf, int64(slot)*slotSize); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read names: %w", err)
		}
		if buf[0] == 0 {
			break // slots are written one after the other
		}
		name := string(buf[1 : 1+min(int(buf[0]), maxName)])
		if checkName(name) != nil || n.byName[name] != nil {
			name = "" // a slot that was never whole
		}
		n.slots[slot] = name
		e := n.used.PushFront(slot)
		if name != "" {
			n.byName[name] = e
		}
	}
	return n, nil
}

// address returns the address of a name, which is canonical.
func (n *names) address(name string) (netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if e := n.byName[name]; e != nil {
		n.used.MoveToFront(e)
		return slotAddress(e.Value.(int)), nil
	}
	slot := n.first + n.used.Len()
	if n.used.Len() >= n.most {
		slot = n.used.Back().Value.(int)
	}
	buf := make([]byte, slotSize)
	buf[0] = byte(len(name))
	copy(buf[1:], name)
	if _, err := n.file.WriteAt(buf, int64(slot)*slotSize); err != nil {
		return netip.Addr{}, fmt.Errorf("remember name: %w", err)
	}
	if n.used.Len() >= n.most {
		delete(n.byName, n.slots[slot])
		n.used.Remove(n.used.Back())
	}
	n.slots[slot] = name
	n.byName[name] = n.used.PushFront(slot)
	return slotAddress(slot), nil
}

// name returns the name that an address stands for; empty if it was given to none.
func (n *names) name(a netip.Addr) string {
	if !synthetic.Contains(a) {
		return ""
	}
	four, base := a.As4(), synthetic.Addr().As4()
	slot := (int(four[1])-int(base[1]))<<16 | int(four[2])<<8 | int(four[3])
	n.mu.Lock()
	defer n.mu.Unlock()
	name := n.slots[slot]
	if e := n.byName[name]; name != "" && e != nil {
		n.used.MoveToFront(e)
	}
	return name
}

// count returns how many names have addresses.
func (n *names) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.byName)
}

func slotAddress(slot int) netip.Addr {
	base := synthetic.Addr().As4()
	return netip.AddrFrom4([4]byte{base[0], base[1] + byte(slot>>16), byte(slot >> 8), byte(slot)})
}
