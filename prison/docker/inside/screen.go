package inside

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/modes"
	"github.com/git-airlock/git-airlock/prison/moments"
)

// shared is the terminal of a launched command, and the callers that have joined it.
type shared struct {
	log *tail

	mu           sync.Mutex
	modes        modes.Tracker // of the output so far
	joined       []*joiner
	disconnected bool // nobody can join any more
}

// joiner is a caller that has joined, with a queue of output that it has not received yet.
type joiner struct {
	conn  net.Conn
	queue chan []byte
	done  chan struct{} // closed when the queue is written, or the joiner is gone
}

// joinerQueue is how many pieces of output a joiner may be behind before it is disconnected, since the command must never wait.
const joinerQueue = 256

// disconnectPatience is how long a joiner may take to read the rest after the command has ended.
const disconnectPatience = 2 * time.Second

// welcome accepts every connection: only the owner of the folder can connect.
func (s *shared) welcome(listener net.Listener, keys io.Writer) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		j := newJoiner(conn)
		if s.add(j) {
			go j.serve()
			go io.Copy(keys, conn) //nolint:errcheck // ends when the joiner disconnects
		}
	}
}

// add adds a joiner, whose terminal first gets the modes that the command has set.
func (s *shared) add(j *joiner) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.disconnected {
		j.conn.Close()
		return false
	}
	if set := s.modes.Set(); len(set) > 0 {
		j.queue <- set // the queue is empty
	}
	s.joined = append(s.joined, j)
	return true
}

func newJoiner(conn net.Conn) *joiner {
	return &joiner{conn, make(chan []byte, joinerQueue), make(chan struct{})}
}

func (j *joiner) serve() {
	defer close(j.done)
	defer j.conn.Close()
	for piece := range j.queue {
		if _, err := j.conn.Write(piece); err != nil {
			return
		}
	}
}

// Write sends output to all joiners, and disconnects a joiner whose queue is full.
func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.Write(p) //nolint:errcheck // a full disk must not stop the command
	s.modes.Read(p)
	piece := slices.Clone(p)
	s.joined = slices.DeleteFunc(s.joined, func(j *joiner) bool {
		select {
		case j.queue <- piece:
			return false
		default:
			j.conn.Close()
			close(j.queue)
			return true
		}
	})
	return len(p), nil
}

// disconnect lets all joiners read the rest, and disconnects them.
func (s *shared) disconnect() {
	s.mu.Lock()
	joined := s.joined
	s.joined, s.disconnected = nil, true
	s.mu.Unlock()
	for _, j := range joined {
		j.conn.SetWriteDeadline(time.Now().Add(disconnectPatience)) //nolint:errcheck // a socket supports deadlines
		close(j.queue)
	}
	for _, j := range joined {
		<-j.done // closed at the deadline at the latest
	}
}

// tail keeps the end of what is written in two files: at least tailSize bytes, and at most about twice as many.
type tail struct {
	name  string // path of the newer file
	file  *os.File
	size  int // bytes in the newer file
	times *moments.Log
}

const (
	tailSize  = 1 << 20
	oldSuffix = ".old"
	// timesSuffix is the suffix of the file with the times of the output.
	timesSuffix = ".times"
)

func openTail(name string) (*tail, error) {
	if err := os.Remove(name + oldSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	t := &tail{name: name, times: moments.New(name + timesSuffix)}
	return t, t.begin()
}

func (t *tail) begin() (err error) {
	t.size = 0
	t.file, err = os.OpenFile(t.name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	return err
}

func (t *tail) Write(p []byte) (int, error) {
	if t.size >= tailSize {
		kept := int64(t.size)
		if err := errors.Join(t.file.Close(), os.Rename(t.name, t.name+oldSuffix), t.begin()); err != nil {
			return 0, err
		}
		t.times.Begins(kept)
	}
	n, err := t.file.Write(p)
	t.times.Add(n, time.Now())
	t.size += n
	return n, err
}

func (t *tail) Close() error {
	t.times.Close()
	return t.file.Close()
}

// Times returns when the output came that [ReadLog] returns.
func Times(dir string) ([]prison.Moment, error) {
	return moments.Read(filepath.Join(dir, logName+timesSuffix))
}

// ReadLog returns the end of the launched command's output, from the host folder of its prison.
func ReadLog(dir string) (content []byte, err error) {
	name := filepath.Join(dir, logName)
	for _, name := range []string{name + oldSuffix, name} {
		part, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		content = append(content, part...)
	}
	return content, nil
}
