//go:build linux

package native_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison/prisontest"

	"golang.org/x/net/dns/dnsmessage"
)

// outsideEnv makes the test binary serve as the outside network, in its own network namespace: a web server, a time server and a name
// server.
const outsideEnv = "PRISONTEST_OUTSIDE"

// zone contains the names that the name server knows.
var zone = map[string][]string{
	"files.test.": {"203.0.113.1"}, "own.test.": {"198.51.100.1"}, "metadata.test.": {"169.254.169.254"}, "loopback.test.": {"127.0.0.1"},
	"both.test.": {"203.0.113.1", "10.9.9.9"},
}

// beOutside runs the servers until standard input ends.
func beOutside() int {
	in := bufio.NewReader(os.Stdin)
	in.ReadString('\n') // wait until the interface exists
	script := `ip link set lo up && ip addr add 198.51.100.254/24 dev peer && ip addr add 203.0.113.1/32 dev lo && ip link set peer up`
	if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
		fmt.Printf("%v: %s\n", err, out)
		return 1
	}
	web, err := net.Listen("tcp", "203.0.113.1:80")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for port, answer := range map[int]func([]byte) []byte{53: resolve, 123: func(b []byte) []byte { return b }} {
		c, err := net.ListenPacket("udp", fmt.Sprintf("203.0.113.1:%d", port))
		if err != nil {
			fmt.Println(err)
			return 1
		}
		go func() {
			buf := make([]byte, 4096)
			for {
				if n, from, err := c.ReadFrom(buf); err == nil {
					c.WriteTo(answer(buf[:n]), from)
				}
			}
		}()
	}
	go func() {
		for {
			if c, err := web.Accept(); err == nil {
				io.WriteString(c, "world")
				c.Close()
			}
		}
	}()
	fmt.Println("ready")
	io.Copy(io.Discard, in)
	return 0
}

// resolve answers a DNS question from the zone.
func resolve(question []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(question) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	m.Response, m.Additionals = true, nil
	addresses, known := zone[q.Name.String()]
	if !known {
		m.RCode = dnsmessage.RCodeNameError
	}
	header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
	switch q.Type {
	case dnsmessage.TypeA:
		for _, a := range addresses {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: [4]byte(net.ParseIP(a).To4())}})
		}
	case dnsmessage.TypeTXT:
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.TXTResource{TXT: []string{"text"}}})
	}
	answer, _ := m.Pack()
	return answer
}

// startOutside starts the outside network and sets the default route to it.
func startOutside(t *testing.T) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), outsideEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	run(t, `ip link set lo up; ip link add world type veth peer name peer; ip link set peer netns $1
		ip addr add 198.51.100.1/24 dev world; ip addr add 169.254.169.254/16 dev world; ip link set world up; ip route add default via 198.51.100.254
		echo nameserver 203.0.113.1 > $2; mount --bind $2 /etc/resolv.conf`, fmt.Sprint(cmd.Process.Pid), t.TempDir()+"/resolv.conf")
	fmt.Fprintln(in)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
}

func run(t *testing.T, script string, args ...string) {
	t.Helper()
	if out, err := exec.Command("sh", append([]string{"-ec", script, "sh"}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// alone runs a test again in its own network and mount namespaces. In that run it returns true.
func alone(t *testing.T) bool {
	t.Helper()
	const aloneEnv = "PRISONTEST_ALONE"
	if os.Getenv(aloneEnv) != "" {
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can make a host of its own")
	}
	needNative(t)
	for _, tool := range []string{"ip", "unshare"} {
		_, err := exec.LookPath(tool)
		prisontest.Need(t, "network", err)
	}
	cmd := exec.Command("unshare", "-n", "-m", os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), aloneEnv+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	} else if bytes.Contains(out, []byte("SKIP")) {
		t.Skipf("%s", out)
	}
	t.Logf("%s", out)
	return false
}

// TestNetworkWalls makes a network outside, and a host with services on loopback, on its own address, and at the address where clouds
// serve credentials. From an open network, an agent must reach the outside, and must not reach the host in any way.
func TestNetworkWalls(t *testing.T) {
	if !alone(t) {
		return
	}
	startOutside(t)
	hosts := []string{"127.0.0.1", "169.254.169.254", "198.51.100.1"}
	for _, host := range hosts {
		for _, port := range []string{"53", "80"} {
			l, err := net.Listen("tcp", net.JoinHostPort(host, port))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
		}
		c, err := net.Dial("tcp", net.JoinHostPort(host, "80"))
		if err != nil {
			t.Fatalf("the host cannot reach itself: %v", err) // a refusal inside would prove nothing then
		}
		c.Close()
	}
	p := inOpen(t)
	// The host gets this address while the prison runs.
	run(t, "ip addr add 198.51.100.77/24 dev world")
	late, err := net.Listen("tcp", "198.51.100.77:80")
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	want := map[string]bool{
		"203.0.113.1:80": true, "files.test:80": true, "FILES.test.:80": true, "udp:203.0.113.1:123": true, "udp:files.test:123": true,
		"203.0.113.1:81": false, "none.test:80": false, "198.51.100.77:80": false, "198.18.200.200:443": false, "udp:198.51.100.1:123": false,
	}
	for _, name := range []string{"own.test", "metadata.test", "loopback.test", "both.test"} {
		want[name+":53"], want["http://"+name] = false, false
	}
	for _, host := range append(hosts, "127.0.0.2", "10.0.2.2", "10.0.2.4", "0.0.0.1", "255.255.255.255") {
		want[host+":53"], want[host+":80"] = false, false
	}
	var allowed, refused []string
	for address, allow := range want {
		if allow {
			allowed = append(allowed, address)
		} else {
			refused = append(refused, address)
		}
	}
	for _, device := range []string{"", "eth0"} {
		answers := dialAll(t, p, refused, deviceEnv+"="+device)
		maps.Copy(answers, dialAll(t, p, allowed, deviceEnv+"="+device, patientEnv+"=1"))
		for address, got := range answers {
			// A web server's name that leads to the host is refused in words. An answer of the host is none, so that the client would wait in vain.
			if web := strings.HasPrefix(address, "http"); (got == "") != want[address] || web && got != "403 Forbidden" {
				t.Errorf("through %q to %s: %q", device, address, got)
			} else if got != "" {
				t.Logf("through %q: %s", device, got)
			}
		}
	}
}

// TestNames queries a record that is not an address. It also checks that a name keeps its address after the process that returned that
// address was killed.
func TestNames(t *testing.T) {
	if !alone(t) {
		return
	}
	startOutside(t)
	b, s := startedOpen(t)
	p := attach(t, b, s)
	bringSelf(t, p)
	lookup := func() []string {
		addresses := dialAll(t, p, []string{"lookup:files.test"})
		return strings.Fields(addresses["lookup:files.test"])
	}
	before := lookup()
	if len(before) != 2 || !strings.HasPrefix(before[0], "198.18.") || before[1] != "text" {
		t.Fatalf("%q", before)
	}
	pid := networkOf(t, s)
	syscall.Kill(pid, syscall.SIGKILL)
	expectEnd(t, pid)
	connects := func() string { return dial(t, p, before[0]+":80") }
	for begun := time.Now(); connects() != ""; {
		if time.Since(begun) > patience {
			t.Fatalf("the network does not come back: %s", connects())
		}
	}
	if after := lookup(); !slices.Equal(after, before) {
		t.Errorf("%q, then %q", before, after)
	}
}

// lookupAll returns the records of a name from the resolver inside.
func lookupAll(name string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r := net.Resolver{PreferGo: true}
	addresses, err := r.LookupHost(ctx, name)
	if err != nil {
		return "", err
	}
	texts, err := r.LookupTXT(ctx, name)
	return strings.Join(append(addresses, texts...), " "), err
}
