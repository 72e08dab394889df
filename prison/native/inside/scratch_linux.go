package inside

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/native/usernet"

	"golang.org/x/sys/unix"
)

// emptyName is an empty file to mount over others. It exists while the root is built.
const emptyName = ".empty"

// etcShared are files and folders of the host's /etc that programs need and that reveal nothing about the user.
// /etc/localtime is excluded, since a time zone is a place. Files that may contain passwords or names are excluded,
// too, such as the system's settings of git, npm or Maven.
var etcShared = []string{
	"alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "pki/ca-trust", "pki/tls", "ssl",
	"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "bash.bashrc", "inputrc", "terminfo", "fonts",
	"debian_version", "os-release", "mime.types", "protocols", "services", "login.defs", "shells",
	"java-*", "openjdk*", "python3*", "perl",
}

func (b *builder) makeEtc() error {
	if err := os.Mkdir("etc", 0o755); err != nil {
		return err
	}
	s := b.Spec
	files := map[string]string{
		"passwd": fmt.Sprintf("%s:x:%d:%d::/home/%s:%s\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
			s.User, s.UID, s.GID, s.User, shell(".")),
		"group":         fmt.Sprintf("%s:x:%d:\nnogroup:x:65534:\n", s.User, s.GID),
		"hosts":         fmt.Sprintf("127.0.0.1\tlocalhost\n::1\tlocalhost\n127.0.1.1\t%s\n", s.Hostname),
		"hostname":      s.Hostname + "\n",
		"resolv.conf":   b.resolvers(),
		"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
	}
	for name, content := range files {
		if err := os.WriteFile("etc/"+name, []byte(content), 0o644); err != nil {
			return err
		}
	}
	if b.sources.root >= 0 {
		return os.Symlink("/proc/mounts", "etc/mtab")
	}
	aside := b.shareAside("/etc")
	for _, pattern := range etcShared {
		paths, err := filepath.Glob("/etc/" + pattern)
		if err != nil {
			return err
		}
		for _, path := range paths {
			target := strings.TrimPrefix(path, "/")
			if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
				return err
			}
			from := ""
			if aside != "" {
				from = filepath.Join(aside, strings.TrimPrefix(path, "/etc"))
			}
			if err := b.shareAsIs(path, target, from); err != nil {
				return fmt.Errorf("share %s: %w", path, err)
			}
		}
	}
	return os.Symlink("/proc/mounts", "etc/mtab")
}

// resolvers returns the content of resolv.conf(5) inside, which names the network's own resolver. Without a network no resolver answers,
// so the options keep some libraries from waiting.
func (b *builder) resolvers() string {
	if b.Spec.Network == prison.NetworkNone {
		return "options " + strings.Join(prison.ImpatientResolver(), " ") + "\n"
	}
	return "nameserver " + usernet.Resolver() + "\n"
}

// shell returns the login shell of the system below root.
func shell(root string) string {
	if _, err := os.Stat(root + "/bin/bash"); err == nil {
		return "/bin/bash"
	}
	return "/bin/sh"
}

// devices are the character devices of every prison, with their numbers from Documentation/admin-guide/devices.txt.
// The numbers are checked because a file of that name on the host may be a different device.
var devices = map[string]uint64{
	"null": unix.Mkdev(1, 3), "zero": unix.Mkdev(1, 5), "full": unix.Mkdev(1, 7),
	"random": unix.Mkdev(1, 8), "urandom": unix.Mkdev(1, 9), "tty": unix.Mkdev(5, 0),
}

func (b *builder) makeDev() error {
	if err := os.Mkdir("dev", 0o755); err != nil {
		return err
	}
	if err := unix.Mount("dev", "dev", "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=0755,size=64k,nr_inodes=1k"); err != nil {
		return fmt.Errorf("mount /dev: %w", err)
	}
	for name, number := range devices {
		if err := shareDevice(name, number); err != nil {
			return fmt.Errorf("device %s: %w", name, err)
		}
	}
	for name, target := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
		"ptmx": "pts/ptmx",
	} {
		if err := os.Symlink(target, "dev/"+name); err != nil {
			return err
		}
	}
	if err := os.Mkdir("dev/pts", 0o755); err != nil {
		return err
	}
	if err := unix.Mount("devpts", "dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620,max=256"); err != nil {
		return fmt.Errorf("mount /dev/pts: %w", err)
	}
	if err := os.Mkdir("dev/shm", 0o755); err != nil {
		return err
	}
	if err := mountTmpfs("dev/shm", b.Spec, "1777"); err != nil {
		return err
	}
	return seal("dev")
}

func shareDevice(name string, number uint64) error {
	fd, err := unix.Open("/dev/"+name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	// 32 bits on other architectures
	if st.Mode&unix.S_IFMT != unix.S_IFCHR || uint64(st.Rdev) != number { //nolint:unconvert
		return fmt.Errorf("the host's /dev/%s is not that device", name)
	}
	target := "dev/" + name
	if err := os.WriteFile(target, nil, 0o666); err != nil {
		return err
	}
	return bind(fd, "", target, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
}

// makeScratch makes the writable folders that end with the prison.
func (b *builder) makeScratch() error {
	for path, mode := range map[string]string{"tmp": "1777", "run": "0755"} {
		if err := os.Mkdir(path, 0o755); err != nil {
			return err
		}
		if err := mountTmpfs(path, b.Spec, mode); err != nil {
			return err
		}
	}
	if err := os.Mkdir("var", 0o755); err != nil {
		return err
	}
	return os.Symlink("/tmp", "var/tmp")
}

// mountTmpfs mounts a memory file system of at most half of the prison's memory. Empty files use memory, too. If there is a memory group,
// it counts the pages, and the kernel kills init when only such files are left to free.
func mountTmpfs(target string, s prison.Spec, mode string) error {
	memory := s.Limits.OrDefault().Memory / 2
	options := fmt.Sprintf("mode=%s,size=%d,nr_inodes=%d", mode, memory, max(1024, memory/2048))
	if err := unix.Mount("tmpfs", target, "tmpfs", privateFlags, options); err != nil {
		return fmt.Errorf("mount /%s: %w", target, err)
	}
	return nil
}

// procMasked are hidden, as in OCI runtimes: namespaces do not separate what these files show or change.
var procMasked = []string{
	"kcore", "keys", "key-users", "sysrq-trigger", "timer_list", "timer_stats", "sched_debug", "latency_stats",
	"kallsyms", "kpagecount", "kpageflags", "kpagecgroup", "cmdline", "acpi", "scsi", "asound",
	// These describe the hardware and distinguish the machine from others. No build reads them.
	"bus", "fs", "irq", "driver", "tty", "device-tree", "dynamic_debug", "sys/dev",
	"swaps", "partitions", "diskstats", "mdstat", "devices", "filesystems", "modules", "misc", "fb", "consoles", "mtrr",
	"interrupts", "iomem", "ioports", "dma", "locks", "crypto", "bootconfig", "version_signature",
	"pressure", "sys/kernel/random/boot_id", "sys/kernel/bootloader_type",
}

func (b *builder) makeProc() error {
	if err := os.Mkdir("proc", 0o755); err != nil {
		return err
	}
	if err := unix.Mount("proc", "proc", "proc", privateFlags|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := os.WriteFile(emptyName, nil, 0o444); err != nil {
		return err
	}
	const settings = "proc/sys" // read-only as in OCI runtimes; a kernel may have none
	if err := bind(unix.AT_FDCWD, settings, settings, readOnlyAttr|unix.MOUNT_ATTR_NOEXEC); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("make /%s read-only: %w", settings, err)
	}
	for _, name := range procMasked {
		if err := mask("proc/" + name); err != nil {
			return err
		}
	}
	return nil
}

// mask hides a file behind an empty one, and a folder behind an empty memory file system.
func mask(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return nil // this kernel does not have it
	}
	if info.IsDir() {
		err = unix.Mount("tmpfs", path, "tmpfs", privateFlags|unix.MS_NOEXEC|unix.MS_RDONLY, "size=4k,mode=0755")
	} else {
		err = bind(unix.AT_FDCWD, emptyName, path, readOnlyAttr|unix.MOUNT_ATTR_NOEXEC)
	}
	if err != nil {
		return fmt.Errorf("cover /%s: %w", path, err)
	}
	return nil
}
