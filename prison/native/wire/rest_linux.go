package wire

import (
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// RoleEnv configures the runtime of a process that waits for days and never does two things at once. The runtime reserves memory for each
// processor when it starts. GOGC keeps its default: an exporter ends before the first 4 MB of garbage, and [Rest] collects the garbage of
// processes that live longer. Package runtime/debug is not used, since importing it would delay a role's start: see [Conn].
var RoleEnv = []string{"GOMAXPROCS=1"}

// BriefEnv is the environment of a role that soon executes this program again. It collects no garbage.
var BriefEnv = []string{"GOGC=off", "GOMAXPROCS=1"}

// RestAfter is how long after its last request a process calls [Rest].
const RestAfter = 2 * time.Second

// Rest returns memory that was needed for setting up or answering: heap, and pages of the program's file. Each page fault also maps the
// fifteen pages around it. Pages that are needed again are still in the page cache. Rest opens no file, so that a confined process can
// call it as well.
func Rest() {
	runtime.GC()
	page := uintptr(os.Getpagesize())
	base, headers := programHeaders()
	for _, h := range headers {
		if h.kind != ptLoad || h.flags&pfWrite != 0 { // a linker may have changed writable pages
			continue
		}
		// Rounded inwards: the pages at the ends may have parts of other segments.
		from, to := (base+h.address+page-1)&^(page-1), (base+h.address+h.size)&^(page-1)
		if from < to {
			unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED) //nolint:errcheck // resting is optional
		}
	}
}

// Values of elf(5) and getauxval(3).
const (
	ptLoad, ptHeaders = 1, 6
	pfWrite           = 2
	atHeaders         = 3
	atHeaderSize      = 4
	atHeaderCount     = 5
)

// programHeader is Elf64_Phdr of elf(5).
type programHeader struct {
	kind, flags               uint32
	_, address, _, _, size, _ uintptr
}

// programHeaders returns the headers of this program, and the address at which the kernel has loaded it. It returns none if the machine's
// headers have another size.
func programHeaders() (base uintptr, headers []programHeader) {
	vector, err := unix.Auxv()
	if err != nil {
		return 0, nil
	}
	values := map[uintptr]uintptr{}
	for _, v := range vector {
		values[v[0]] = v[1]
	}
	at := values[atHeaders]
	if at == 0 || values[atHeaderSize] != unsafe.Sizeof(programHeader{}) {
		return 0, nil
	}
	headers = unsafe.Slice(*(**programHeader)(unsafe.Pointer(&at)), values[atHeaderCount])
	for _, h := range headers {
		if h.kind == ptHeaders {
			base = at - h.address
		}
	}
	return base, headers
}
