package native

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops/ticks"
)

// netlinkPoll is how often a keeper adds up the memory of the netlink(7) sockets in its prison. Within that time
// two processors can queue up to about a gigabyte.
const netlinkPoll = 100 * time.Millisecond

// boundNetlink ends the prison once its netlink sockets hold more than its memory limit, as the kernel does for
// other memory. No control group counts the answers that wait in such a socket, and each of the agent's descriptors
// can have one. boundNetlink returns when done is closed.
func (k *keeper) boundNetlink(done <-chan struct{}) {
	sockets, err := os.Open(fmt.Sprintf("/proc/%d/net/netlink", k.init.Pid))
	if err != nil {
		return // init has ended
	}
	defer sockets.Close()
	most := k.spec.Limits.OrDefault().Memory
	for range ticks.Each(done, netlinkPoll) {
		if netlinkMemory(sockets, most) > most {
			k.init.Kill()
			return
		}
	}
}

// netlinkMemory adds up the bytes in the netlink sockets that a file in the format of /proc/net/netlink lists. It stops reading once the
// sum exceeds most. The caller keeps the file open, since opening it each time would take three times as long.
func netlinkMemory(sockets io.ReadSeeker, most int64) (sum int64) {
	if _, err := sockets.Seek(0, io.SeekStart); err != nil {
		return 0
	}
	for lines := bufio.NewScanner(sockets); sum <= most && lines.Scan(); {
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
