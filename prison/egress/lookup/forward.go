package lookup

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"
)

const (
	// forwardPatience is how long a resolver may take to answer a message that is passed on.
	forwardPatience = 2500 * time.Millisecond
	// maxMessage is the maximum size of a DNS message in bytes.
	maxMessage = 1<<16 - 1
)

// resolverFile names the resolvers of this machine, see resolv.conf(5).
const resolverFile = "/etc/resolv.conf"

// Forward sends a DNS message to the resolvers of this machine, and returns the answer of the first one that gives one.
func Forward(ctx context.Context, question []byte) ([]byte, error) {
	content, err := os.ReadFile(resolverFile)
	if err != nil {
		return nil, err
	}
	err = fmt.Errorf("%s names no resolver", resolverFile)
	for _, server := range nameServers(string(content)) {
		var answer []byte
		if answer, err = exchange(ctx, "udp", server, question); err == nil && len(answer) > 2 && answer[2]&truncated != 0 {
			answer, err = exchange(ctx, "tcp", server, question)
		}
		if err == nil {
			return answer, nil
		}
	}
	return nil, err
}

// nameServers returns the addresses that questions are sent to, at most [maxResolvers], see resolv.conf(5).
func nameServers(content string) (servers []string) {
	for line := range strings.Lines(content) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "nameserver" || len(servers) == maxResolvers {
			continue
		}
		if a, err := netip.ParseAddr(fields[1]); err == nil {
			servers = append(servers, netip.AddrPortFrom(a, 53).String())
		}
	}
	return servers
}

// truncated is the bit in the third byte of a DNS message that says that the whole message needs TCP.
const truncated = 2

// exchange sends a question to a resolver and returns the answer.
func exchange(ctx context.Context, network, server string, question []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, forwardPatience)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, network, server)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	end, _ := ctx.Deadline()
	c.SetDeadline(end)
	if network == "udp" {
		if _, err := c.Write(question); err != nil {
			return nil, err
		}
		buf := make([]byte, maxMessage)
		n, err := c.Read(buf)
		return buf[:n], err
	}
	if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(question))), question...)); err != nil {
		return nil, err
	}
	var head [2]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, err
	}
	answer := make([]byte, binary.BigEndian.Uint16(head[:]))
	_, err = io.ReadFull(c, answer)
	return answer, err
}
