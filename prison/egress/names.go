package egress

import (
	"container/list"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
)

// synthetic is the range of the addresses that stand for names inside. No public network uses it (RFC 2544).
var synthetic = netip.MustParsePrefix("198.18.0.0/15")

const (
	// maxNames is how many names that rules allow can have an address at a time, and maxOthers how many other names.
	maxNames, maxOthers = 1 << 16, 1 << 12
	// slotSize is the size of a slot in bytes: a name after its length. The nth slot of the file has the name of the nth address of the
	// range.
	slotSize = 256
	// firstSlot leaves out the network's own address. The slots of names that no rule allows begin with firstOther.
	firstSlot  = 1
	firstOther = firstSlot + maxNames
)

// A NameFile keeps the names of a network process for its successor, because programs inside remember addresses. One process uses it at a
// time.
type NameFile interface {
	io.ReaderAt
	io.WriterAt
}

// names gives each name its own address. If none is left, a new name gets the address that was not used for the longest time.
type names struct {
	file  NameFile
	first int // the first slot
	most  int // how many slots

	mu     sync.Mutex
	byName map[string]*list.Element // elements of used
	slots  map[int]string
	used   *list.List // slot numbers, the one used last in front
}

// loadNames reads the names to which an earlier process gave addresses, from the slot first on.
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
			break // slots are filled in order
		}
		name := string(buf[1 : 1+min(int(buf[0]), maxName)])
		if checkName(name) != nil || n.byName[name] != nil {
			name = "" // the slot was not written completely
		}
		n.slots[slot] = name
		e := n.used.PushFront(slot)
		if name != "" {
			n.byName[name] = e
		}
	}
	return n, nil
}

// address returns the address of a canonical name, and gives it one if it has none.
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

// name returns the name that an address stands for, empty if there is none.
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
