package native

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// netlinkPoll is how often a keeper adds up the memory of the netlink(7) sockets in its prison. Within that time
// two processors can queue up to about a gigabyte.
const netlinkPoll = 100 * time.Millisecond

// boundNetlink ends the prison once its netlink sockets hold more than its memory limit, as the kernel does for
// other memory. No control group counts the answers that wait in such a socket, and each of the agent's descriptors
// can have one. boundNetlink returns when done is closed.
func (k *keeper) boundNetlink(done <-chan struct{}) {
	file := fmt.Sprintf("/proc/%d/net/netlink", k.init.Pid)
	most := k.spec.Limits.OrDefault().Memory
	tick := time.NewTicker(netlinkPoll)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			if netlinkMemory(file, most) > most {
				k.init.Kill()
				return
			}
		}
	}
}

// netlinkMemory returns the number of bytes in the netlink sockets that a file in the format of /proc/net/netlink
// lists. It stops reading once the sum exceeds most.
func netlinkMemory(file string, most int64) (sum int64) {
	f, err := os.Open(file)
	if err != nil {
		return 0 // init has ended
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); sum <= most && lines.Scan(); {
		// sk Eth Pid Groups Rmem Wmem Dump Locks Drops Inode
		if fields := strings.Fields(lines.Text()); len(fields) > 5 {
			for _, held := range fields[4:6] {
				n, _ := strconv.ParseInt(held, 10, 64) // the header line counts as 0
				sum += n
			}
		}
	}
	return sum
}
