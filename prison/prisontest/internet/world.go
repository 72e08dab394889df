// Package internet makes a world in which the network of a prison can be tried, and from which no packet leaves: a network
// namespace that plays this machine, and one with all the servers that a prison may reach or may not.
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
	// Host is a program that runs others in the namespace that plays this machine, with the DNS server of the other one, and
	// with trust in the certificates of its servers.
	Host    string
	near    string
	far     string
	servers []*exec.Cmd
}

// systemBundle is the file with the certificates that this machine trusts.
const systemBundle = "/etc/ssl/certs/ca-certificates.crt"

// layout makes the namespaces $1, which plays this machine, and $2. The closed addresses are those of the second one, so that
// whatever the first one sends to them arrives.
const layout = `
	ip netns add $1; ip netns add $2
	ip -n $1 link add uplink type veth peer name downlink netns $2
	ip -n $1 addr add 198.51.100.1/24 dev uplink; ip -n $2 addr add 198.51.100.10/24 dev downlink
	for n in $1 $2; do ip -n $n link set lo up; done
	ip -n $1 link set uplink up; ip -n $2 link set downlink up
	ip -n $1 route add default via 198.51.100.10
	for a in 169.254.169.254 10.9.9.9 100.64.0.1 100.100.100.200 168.63.129.16 192.0.0.192 172.16.5.5 192.168.7.7; do ip -n $2 addr add $a/32 dev lo; done`

// patience is how long the servers may take to begin.
const patience = 60 * time.Second

// Make makes a world, as root. It keeps its files in a folder: see [Serve], of which the command serve runs one in each
// namespace with a folder as its last argument. The servers of the namespace that plays this machine have the folder "local". The
// caller must call [World.Close], also after an error.
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

// bundle is a file with the certificates of this machine, and that of the servers. It is there when all servers listen.
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

// start runs servers in a namespace.
func (w *World) start(namespace string, serve []string) error {
	servers := exec.Command("nsenter", append([]string{"--net=/run/netns/" + namespace}, serve...)...)
	servers.Stderr = os.Stderr
	if err := servers.Start(); err != nil {
		return err
	}
	w.servers = append(w.servers, servers)
	return nil
}

// await waits for a file.
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
		s.Process.Kill() // it may have ended
		s.Wait()         // it was killed
	}
	exec.Command("sh", "-c", "ip netns del $1; ip netns del $2", "sh", w.near, w.far).Run() // nothing else can be done
}
