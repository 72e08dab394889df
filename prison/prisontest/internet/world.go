// Package internet imitates the internet for tests of a prison's network. It makes two network namespaces, which no packet leaves: one
// plays this machine, and the other one has all the servers that a prison may try to reach. Begin reading at [Make] and [Serve].
package internet

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// World is a pair of network namespaces with servers in both.
type World struct {
	// Host is the path of a program that runs its arguments in the namespace that plays this machine. There, the DNS server is that of
	// the other namespace, and the certificates of the other namespace's servers are trusted.
	Host    string
	near    string // namespace that plays this machine
	far     string // namespace with the servers
	servers []*exec.Cmd
}

// systemBundle is the file with the certificates that this machine trusts.
const systemBundle = "/etc/ssl/certs/ca-certificates.crt"

// layout makes the namespaces $1, which plays this machine, and $2. The second one has the closed addresses, so that every packet to a
// closed address arrives there.
const layout = `
	ip netns add $1; ip netns add $2
	ip -n $1 link add uplink type veth peer name downlink netns $2
	ip -n $1 addr add 198.51.100.1/24 dev uplink; ip -n $2 addr add 198.51.100.10/24 dev downlink
	for n in $1 $2; do ip -n $n link set lo up; done
	ip -n $1 link set uplink up; ip -n $2 link set downlink up
	ip -n $1 route add default via 198.51.100.10
	for a in 169.254.169.254 10.9.9.9 100.64.0.1 100.100.100.200 168.63.129.16 192.0.0.192 172.16.5.5 192.168.7.7; do ip -n $2 addr add $a/32 dev lo; done`

// patience is how long the servers may take to start.
const patience = 60 * time.Second

// Make makes a world. It must run as root. serve is a command that calls [Serve] with its last argument. Make runs it in each namespace:
// with folder in the second one, and with folder/local in the one that plays this machine. The caller must call [World.Close], also after
// an error.
func Make(folder string, serve ...string) (*World, error) {
	name := fmt.Sprintf("airlock%d-%x", os.Getpid(), time.Now().UnixNano()&0xffffff)
	w := &World{Host: filepath.Join(folder, "host"), near: name, far: name + "-far"}
	local, resolver := filepath.Join(folder, "local"), filepath.Join(folder, "resolv.conf")
	script := "#!/bin/sh\nexec nsenter --net=/run/netns/" + w.near + " unshare -m sh -euc '" +
		"mount --bind " + resolver + " /etc/resolv.conf; mount --bind " + filepath.Join(folder, bundle) + " " + systemBundle + "; " +
		"exec \"$@\"' sh \"$@\"\n"
	err := errors.Join(os.MkdirAll(filepath.Join(folder, "www"), 0o755), os.MkdirAll(local, 0o755),
		os.WriteFile(resolver, []byte("nameserver "+publicServer+"\nsearch corp.test\n"), 0o644), os.WriteFile(w.Host, []byte(script), 0o755))
	if err != nil {
		return w, err
	}
	if said, err := exec.Command("sh", "-euc", layout, "sh", w.near, w.far).CombinedOutput(); err != nil {
		return w, fmt.Errorf("make namespaces: %w: %s", err, said)
	}
	for namespace, dir := range map[string]string{w.far: folder, w.near: local} {
		if err := w.start(namespace, append(serve, dir)); err != nil {
			return w, err
		}
	}
	for _, dir := range []string{folder, local} {
		if err := await(filepath.Join(dir, "ready")); err != nil {
			return w, err
		}
	}
	return w, trust(folder)
}

// bundle is the file with the certificates that this machine trusts, and that of the servers. It exists when all servers listen.
const bundle = "bundle.pem"

func trust(folder string) error {
	system, err := os.ReadFile(systemBundle)
	if err != nil {
		return err
	}
	own, err := os.ReadFile(filepath.Join(folder, "ca.pem"))
	if err != nil {
		return err
	}
	file := filepath.Join(folder, bundle)
	if err := os.WriteFile(file+".new", append(system, own...), 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// start runs the command serve in a namespace.
func (w *World) start(namespace string, serve []string) error {
	servers := exec.Command("nsenter", append([]string{"--net=/run/netns/" + namespace}, serve...)...)
	servers.Stderr = os.Stderr
	if err := servers.Start(); err != nil {
		return err
	}
	w.servers = append(w.servers, servers)
	return nil
}

// await waits until a file exists.
func await(file string) error {
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			return nil
		}
	}
	return fmt.Errorf("the servers did not make %s", file)
}

// Close ends the servers, and removes the namespaces.
func (w *World) Close() {
	for _, s := range w.servers {
		s.Process.Kill() // the process may have ended
		s.Wait()         // an error only reports that it was killed
	}
	exec.Command("sh", "-c", "ip netns del $1; ip netns del $2", "sh", w.near, w.far).Run() // if this fails, nothing else can be done
}
