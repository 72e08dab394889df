package execs

import (
	"encoding/json"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/git-airlock/git-airlock/prison/native/wire"
	"github.com/git-airlock/git-airlock/prison/passed"

	"golang.org/x/sys/unix"
)

// Config is the configuration of a recorder.
type Config struct {
	Dir  string   // the folder for the record, packed
	Deny []string // rules, packed, see [ParseRules]
	Env  []string // the variables of the prison, packed, whose values are masked
	Ends bool     // the recorder kills the process of the pidfd that it inherits when the link to the keeper is closed
}

// withValues returns a function that masks the values of variables, and then calls mask.
func withValues(mask func([]string) []string, env []string) func([]string) []string {
	var secret []string
	for _, v := range env {
		if _, value, _ := strings.Cut(v, "="); passed.Hidden(value) {
			secret = append(secret, passed.Forms(value)...)
		}
	}
	slices.SortFunc(secret, func(a, b string) int { return len(b) - len(a) }) // longest first: one value may be the beginning of another
	var pairs []string
	for _, value := range secret {
		pairs = append(pairs, value, passed.Mask)
	}
	if len(pairs) == 0 || mask == nil {
		return mask
	}
	values := strings.NewReplacer(pairs...)
	return func(words []string) []string {
		hidden := make([]string, len(words))
		for i, w := range words {
			hidden[i] = values.Replace(w)
		}
		return mask(hidden)
	}
}

// Begin records programs and exits, if this process was started as a recorder. Every program that makes native prisons must call it before
// main, with a function that masks the secrets in the words of a command.
func Begin(mask func([]string) []string) {
	wire.Begin(map[string]wire.Role{wire.Recorder: func(config []byte, _ int) int { return record(config, mask) }})
}

// priority is the nice value of the thread that answers: a process inside waits for it.
const priority = -10

// maxMemory is a multiple of the memory that a recorder can use with the bounds of its calls. A recorder that exceeds it ends, and a successor
// goes on: the numbers of the records that were not written are missing.
const maxMemory = 512 << 20

// Given is a message from the keeper with a listener. Only the first message to a recorder may come without one.
type Given struct {
	Slot int // in the shared memory
	// Enters reports that the first call comes from the entrance of package containers, which has asked for the listener. This call is not
	// recorded.
	Enters bool
	// Hidden are the paths of programs that are not recorded. The script that watches a container executes them all the time.
	Hidden []string
}

// record is the role of the recorder. The descriptors are the link to the keeper, the memory of [NewShared], and with [Config.Ends]
// the pidfd of the process to kill.
func record(config []byte, mask func([]string) []string) int {
	var c Config
	if json.Unmarshal(config, &c) != nil {
		return 1
	}
	link, err := wire.AwaitParent()
	if err != nil {
		return 1
	}
	unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: maxMemory, Max: maxMemory}) //nolint:errcheck // a second bound, after those of the calls
	memory := wire.InheritedFile(1)
	closed := func() {}
	if c.Ends {
		first := wire.InheritedFile(2)
		closed = func() { unix.PidfdSendSignal(int(first.Fd()), unix.SIGKILL, nil, 0) }
	}
	defer closed()
	var g Given
	files, err := link.Recv(&g)
	if err != nil {
		return 1 // the prison never ran
	}
	r := &recorder{mask: withValues(mask, wire.UnpackAll(c.Env)), processes: map[int]*process{}, callers: map[int]*process{}, gone: map[int]origin{}, outside: namespaceOf("self")}
	r.drained = sync.NewCond(&r.mu)
	if r.rules, err = ParseRules(wire.UnpackAll(c.Deny)); err != nil {
		return 1
	}
	if r.shared, err = mapShared(int(memory.Fd())); err != nil {
		return 1
	}
	var last uint64
	if r.out, last, err = openFile(wire.Unpack(c.Dir)); err != nil {
		return 1
	}
	r.shared.seq = max(r.shared.seq, last)
	r.shared.count++
	if r.poll, err = newPoll(link); err != nil {
		return 1
	}
	if err = r.listenFor(wire.Unpack(c.Dir)); err != nil {
		return 1
	}
	r.listen(g, files)
	r.tend(link, closed)
	return 0
}

// listen begins to answer the calls of a listener.
func (r *recorder) listen(g Given, files []*os.File) {
	if len(files) != 1 || g.Slot < 0 || g.Slot >= Slots {
		wire.CloseAll(files)
		return
	}
	r.answering.Go(func() {
		defer files[0].Close()
		runtime.LockOSThread()
		unix.Setpriority(unix.PRIO_PROCESS, 0, priority) //nolint:errcheck // only root may, and answers are only slower without
		a := answerer{recorder: r, listener: listener(files[0].Fd()), slot: &r.shared.slots[g.Slot], within: -1, hidden: g.Hidden, all: r.shared.count == 1 && !g.Enters, digests: digests{map[contentID]string{}, &r.content}}
		a.listener.prepare()
		a.answer()
	})
}

// hear takes a message from the keeper. It returns false when the keeper has closed the link.
func (r *recorder) hear(link wire.Conn) bool {
	var g Given
	files, err := link.Recv(&g)
	if err == nil {
		r.listen(g, files)
	}
	return err == nil
}
