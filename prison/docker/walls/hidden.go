package walls

import (
	"path/filepath"
	"slices"
)

// kernelFiles are the hidden files of the kernel: those that the engine hides by default, and files that reveal the machine, its disks
// and devices, and the activity of other programs. Files that programs need stay visible: processors, memory, control groups.
var kernelFiles = []string{
	"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug",
	"/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/sys/devices/virtual/powercap", "/sys/firmware",

	"/proc/cmdline", "/proc/config.gz", "/proc/kallsyms", "/proc/key-users", "/proc/kpagecgroup", "/proc/kpagecount", "/proc/kpageflags",
	"/proc/bootconfig", "/proc/buddyinfo", "/proc/bus", "/proc/consoles", "/proc/crypto", "/proc/device-tree", "/proc/devices",
	"/proc/diskstats", "/proc/dma", "/proc/driver", "/proc/execdomains", "/proc/fb", "/proc/filesystems", "/proc/fs", "/proc/iomem",
	"/proc/ioports", "/proc/irq", "/proc/locks", "/proc/mdstat", "/proc/misc", "/proc/modules", "/proc/mtrr", "/proc/pagetypeinfo",
	"/proc/partitions", "/proc/schedstat", "/proc/slabinfo", "/proc/softirqs", "/proc/swaps", "/proc/tty", "/proc/vmallocinfo",
	"/proc/zoneinfo",
	"/proc/pressure", "/proc/version_signature", "/proc/sys/dev", "/proc/sys/kernel/random/boot_id", "/proc/sys/kernel/bootloader_type",

	"/sys/block", "/sys/bus", "/sys/class", "/sys/dev", "/sys/hypervisor", "/sys/module", "/sys/power",
	"/sys/fs/bcache", "/sys/fs/bpf", "/sys/fs/btrfs", "/sys/fs/erofs", "/sys/fs/ext4", "/sys/fs/f2fs", "/sys/fs/fuse", "/sys/fs/nfs",
	"/sys/fs/pstore", "/sys/fs/xfs",
	"/sys/kernel/btf", "/sys/kernel/debug", "/sys/kernel/iommu_groups", "/sys/kernel/irq", "/sys/kernel/security", "/sys/kernel/slab",
	"/sys/kernel/tracing",
	"/sys/devices/faux", "/sys/devices/platform", "/sys/devices/pnp0", "/sys/devices/software", "/sys/devices/virtual",
}

// Hidden returns kernelFiles, and the device roots of this machine, whose names reveal its buses.
func Hidden() []string {
	roots, _ := filepath.Glob("/sys/devices/*") // there may be none
	all := slices.DeleteFunc(append(roots, kernelFiles...), func(path string) bool { return path == "/sys/devices/system" })
	slices.Sort(all)
	return slices.Compact(all)
}
