package inside

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops/ticks"
	"github.com/git-airlock/git-airlock/prison"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"
)

const (
	// watchPoll is the interval of a watch. Only root can watch the container's files from outside, and inside
	// there may be no program that uses inotify.
	watchPoll = 150 * time.Millisecond
	// watchPatience is how long a check may take before the watch ends. A path may be a pipe, for example.
	watchPatience = 20 * time.Second
	// watchLate is how long a check may take before the watch also checks whether the container still runs.
	watchLate = time.Second
)

// watchScript checks the paths, its later arguments, whenever it reads a line, and prints whether they have changed. The first argument
// is the script itself: if there is bash, it runs the script, and compares times to the nanosecond without starting a process. For each
// path the script keeps a file with the path's time, or with the time of the check where a file cannot have exactly the path's time.
// Other shells compare seconds only, so there the script uses stat(1).
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

// watchPrograms are the programs of the script. The agent cannot replace them, since the image is read-only.
var watchPrograms = []string{
	"/bin/mktemp", "/bin/rm", "/bin/stat", "/bin/touch", "/usr/bin/mktemp", "/usr/bin/rm", "/usr/bin/stat", "/usr/bin/touch",
}

// shell returns the best shell of the image, or [Shell] if that is unknown.
func (r *Container) shell() string {
	for _, v := range r.Base {
		if shell, ok := strings.CutPrefix(v, "SHELL="); ok {
			return shell
		}
	}
	return Shell
}

// Watch implements [prison.Prison].
func (r *Container) Watch(ctx context.Context, paths []string) (<-chan struct{}, error) {
	if len(paths) == 0 {
		return nil, errors.New("nothing to watch")
	}
	argv := append([]string{r.shell(), "-c", watchScript, "sh", watchScript}, paths...)
	_, stream, err := r.execute(ctx, container.ExecOptions{
		Cmd: argv, WorkingDir: "/", AttachStdin: true, AttachStdout: true, AttachStderr: true,
	}, watchPrograms...)
	if err != nil {
		return nil, err
	}
	answers, w := io.Pipe()
	go func() {
		_, err := stdcopy.StdCopy(w, io.Discard, stream.Reader)
		w.CloseWithError(err)
	}()
	late := func() func() { return r.closeAtEnd(ctx, stream, watchLate) }
	l := &checker{ask: stream.Conn, answers: bufio.NewReader(answers), late: late}
	stop := context.AfterFunc(ctx, stream.Close)
	if _, err := l.check(); err != nil {
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

// check returns [prison.ErrNotRunning] if the container does not run.
func (r *Container) check(ctx context.Context) error {
	if !r.alive(ctx) {
		return prison.ErrNotRunning
	}
	return nil
}

// checker makes the script check the paths.
type checker struct {
	ask interface {
		io.Writer
		SetReadDeadline(time.Time) error
	}
	answers *bufio.Reader
	late    func() (stop func()) // called before each check; it ends the check if the container has ended
}

func (l *checker) check() (changed bool, err error) {
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

// run checks the paths until ctx or the script ends.
func (l *checker) run(ctx context.Context, changes chan<- struct{}) {
	for range ticks.Each(ctx.Done(), watchPoll) {
		changed, err := l.check()
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
