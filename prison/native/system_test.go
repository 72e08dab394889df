//go:build linux

package native_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSystemMounts starts a prison whose system has folders and files that are mount points.
func TestSystemMounts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount")
	}
	b, s := prepared(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("planted\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	weaker := startAfter(t, s, `mount -t tmpfs -o mode=755 none /usr/share && mkdir "/usr/share/a b" && echo on top >"/usr/share/a b/x"
		mount -t tmpfs -o mode=755 none "/usr/share/a b" && echo below >"/usr/share/a b/y"
		mount -t tmpfs -o mode=755 none /etc/ssl && echo own >/etc/ssl/z && mount --bind `+dir+`/file /etc/services`)
	if got := output(t, b, s, `cat /usr/share/*/* /etc/ssl/z /etc/services; ls /usr/share /etc/ssl`); got != "below\nown\nplanted\n/etc/ssl:\nz\n\n/usr/share:\na b" {
		t.Errorf("%q", got)
	}
	if strings.TrimSpace(weaker) != "" {
		t.Errorf("weaker: %q", weaker)
	}
}

// TestSystemTooDeep starts a prison whose system is an overlay of an overlay already. The kernel refuses a third level.
func TestSystemTooDeep(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount")
	}
	b, s := prepared(t)
	weaker := startAfter(t, s, `mkdir `+s.Dir+`/empty; for n in 1 2; do mount -t overlay -o lowerdir=/usr:`+s.Dir+`/empty none /usr; done`)
	if got := output(t, b, s, "echo works | cat"); got != "works" {
		t.Errorf("%q", got)
	}
	if !strings.Contains(weaker, "(/usr: invalid argument)") {
		t.Errorf("weaker: %q", weaker)
	}
}
