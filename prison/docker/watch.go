package docker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"
)

const (
	// watchPoll is how often a watch looks. The container's files cannot be watched from outside but by
	// root, and inside no program that knows inotify can be counted on.
	watchPoll = 150 * time.Millisecond
	// watchPatience is how long a look may take before the watch is given up: a path that is a pipe, say.
	watchPatience = 20 * time.Second
	// watchLate is how long one takes before it is asked whether the container still runs.
	watchLate = time.Second
)

// watchScript looks at its later arguments whenever it reads a line, and says whether they have changed. The first
// is the script itself: bash, if there is one, compares times to the nanosecond without starting a process. It
// keeps a file for each path with the time that the path had. Where that time cannot be given to a file
// exactly, the time of the look must do. Other shells compare seconds, so stat(1) has to tell.
const watchScript = `
[ "$BASH_VERSION" ] || ! command -v bash >/dev/null || exec bash -c "$1" sh "$@"
shift
_seen=
if [ -z "$BASH_VERSION" ]; then
	while read -r _; do
		_now=$(stat -c '%n %i %s %y %z' -- "$@" 2>/dev/null)
		if [ "$_now" = "$_seen" ]; then echo; else echo c; fi
		_seen=$_now
	done
	exit
fi
umask 077
_dir=$(mktemp -d /tmp/.XXXXXX) || exit 1
trap 'rm -rf "$_dir"' EXIT
trap 'exit 0' HUP TERM
: >"$_dir/a"
touch -r "$_dir/a" "$_dir/b"
_same=
[ "$_dir/a" -nt "$_dir/b" ] || [ "$_dir/a" -ot "$_dir/b" ] || _same=1
while read -r _; do
	_now= _changed= _i=0
	for _path; do
		_i=$((_i + 1))
		_mark=$_dir/$_i
		if ! [ -e "$_path" ]; then _now=$_now-; continue; fi
		_now=$_now+
		[ "$_path" -nt "$_mark" ] || { [ "$_same" ] && [ "$_path" -ot "$_mark" ]; } || continue
		_changed=1
		if [ "$_same" ]; then touch -r "$_path" "$_mark"; else : >"$_mark"; fi
	done
	[ "$_now" = "$_seen" ] || _changed=1
	_seen=$_now
	if [ "$_changed" ]; then echo c; else echo; fi
done
`

// Watch implements [prison.Prison].
func (r *running) Watch(ctx context.Context, paths []string) (<-chan struct{}, error) {
	if len(paths) == 0 {
		return nil, errors.New("nothing to watch")
	}
	argv := append([]string{defaultSh, "-c", watchScript, "sh", watchScript}, paths...)
	id, err := r.createExec(ctx, container.ExecOptions{
		Cmd: argv, WorkingDir: "/", AttachStdin: true, AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		return nil, err
	}
	stream, err := r.ContainerExecAttach(ctx, id, container.ExecAttachOptions{})
	if err != nil {
		return nil, r.lost(ctx, "watch", err)
	}
	answers, w := io.Pipe()
	go func() {
		_, err := stdcopy.StdCopy(w, io.Discard, stream.Reader)
		w.CloseWithError(err)
	}()
	late := func() func() { return r.closeAtEnd(ctx, stream, watchLate) }
	l := &looker{ask: stream.Conn, answers: bufio.NewReader(answers), late: late}
	stop := context.AfterFunc(ctx, stream.Close)
	if _, err := l.look(); err != nil {
		stop()
		stream.Close()
		return nil, errors.Join(ctx.Err(), fmt.Errorf("watch: %w", err), r.check(ctx))
	}
	changes := make(chan struct{}, 1)
	go func() {
		defer close(changes)
		defer stream.Close()
		defer stop()
		l.run(ctx, changes)
	}()
	return changes, nil
}

// check returns [prison.ErrNotRunning] if that is so.
func (r *running) check(ctx context.Context) error {
	if !r.alive(ctx) {
		return prison.ErrNotRunning
	}
	return nil
}

// looker asks the script to look.
type looker struct {
	ask interface {
		io.Writer
		SetReadDeadline(time.Time) error
	}
	answers *bufio.Reader
	late    func() (stop func()) // called before each look: it ends that when nobody will answer any more
}

func (l *looker) look() (changed bool, err error) {
	if err := l.ask.SetReadDeadline(time.Now().Add(watchPatience)); err != nil {
		return false, err
	}
	if _, err := io.WriteString(l.ask, "\n"); err != nil {
		return false, err
	}
	defer l.late()()
	answer, err := readLine(l.answers)
	return strings.HasPrefix(answer, "c"), err
}

// run looks until ctx or the script ends.
func (l *looker) run(ctx context.Context, changes chan<- struct{}) {
	tick := time.NewTicker(watchPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		changed, err := l.look()
		if err != nil {
			return
		}
		if changed {
			select {
			case changes <- struct{}{}:
			default:
			}
		}
	}
}
