package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/dialect"
	"github.com/git-airlock/git-airlock/prison/docker/inside"
	"github.com/git-airlock/git-airlock/prison/egress/credential/secret"
	"github.com/git-airlock/git-airlock/prison/hostfile"
	"github.com/git-airlock/git-airlock/prison/native/usernet"
	"github.com/git-airlock/git-airlock/prison/native/wire"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
)

const (
	// networkRole is the name of a network's keeper in the host's process list.
	networkRole = "network"
	device      = usernet.Device
	socketName  = wire.SocketName
	// tapPatience limits how long the helper may take.
	tapPatience = 30 * time.Second
)

// A network's keeper is a role of every program that contains this package.
func init() { wire.Begin(map[string]wire.Role{networkRole: wire.Serve(keepNetwork)}) }

// resolver returns the address of the name server in a network.
func resolver() string { return usernet.Resolver() }

// networkAnswer is the keeper's answer. It is empty if the network works.
type networkAnswer struct {
	Error string              // the error, in words
	Lacks *prison.Unavailable // the refusal, if this machine cannot provide a network
}

func (a networkAnswer) err() error {
	switch {
	case a.Lacks != nil:
		return a.Lacks
	case a.Error != "":
		return errors.New(a.Error)
	}
	return nil
}

func newNetworkAnswer(err error) (a networkAnswer) {
	if err != nil && !errors.As(err, &a.Lacks) {
		a.Error = err.Error()
	}
	return a
}

// checkNetwork returns an error if this user cannot have a network in containers.
func checkNetwork(s prison.Spec) error {
	if s.Network == prison.NetworkNone {
		return nil
	}
	return refusal(usernet.CheckIDs(s))
}

// refusal turns another backend's refusal into one of this backend.
func refusal(err error) error {
	if u, ok := errors.AsType[*prison.Unavailable](err); ok && u.Backend != dialect.Name {
		return dialect.Unavailable(u.Reason, u.Mend...)
	}
	return err
}

// connectNetwork starts the keeper of a network. The result waits until packets are carried.
func connectNetwork(ctx context.Context, o networkOrder) (wait func() error) {
	if o.Spec.Network == prison.NetworkNone {
		return func() error { return nil }
	}
	o.Spec = wire.PackSpec(o.Spec)
	env := wire.RoleEnv
	for _, name := range []string{"PATH", client.EnvOverrideCertPath, client.EnvTLSVerify} {
		env = append(slices.Clip(env), name+"="+os.Getenv(name))
	}
	p, link, err := wire.Detach(networkRole, o, env)
	if err != nil {
		return func() error { return fmt.Errorf("start the keeper of the network: %w", err) }
	}
	stop := context.AfterFunc(ctx, func() { p.Kill() }) // the keeper may have ended
	return func() error {
		defer link.Close()
		var a networkAnswer
		_, err := link.Recv(&a)
		if !stop() {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("the keeper of the network ended: %w", err)
		}
		return a.err()
	}
}

// reconnectNetwork starts another keeper for a running prison whose keeper was killed. Until then no packet leaves. If it fails, the next
// command tries again. It does nothing if a start has not connected the network yet.
func reconnectNetwork(ctx context.Context, o networkOrder) {
	if _, err := os.Lstat(o.path(networkStateName)); err != nil {
		return
	}
	if o.runs() {
		return
	}
	if o.Spec.Sources != nil {
		o.Secrets = o.Spec.Sources(ctx)
	}
	connectNetwork(ctx, o)() //nolint:errcheck // see above
}

// runs reports whether the network has a keeper.
func (o networkOrder) runs() bool { return wire.Answers(o.path(networkFolder)) }

// endNetwork ends the network of a prison, and returns when it has ended. It kills a keeper that does not end in time, for example a
// stopped one.
func endNetwork(ctx context.Context, dir string) error {
	o := networkOrder{Spec: prison.Spec{Dir: dir}}
	if err := os.Remove(o.path(networkStateName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	begun := time.Now()
	for deadline := begun.Add(2 * dialect.KillPatience); ; time.Sleep(5 * time.Millisecond) {
		lock, err := o.lock(0)
		if err == nil {
			return lock.Close()
		}
		if errors.Is(err, fs.ErrNotExist) { // there was never a network
			return nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		if c, err := wire.Dial(o.path(networkFolder)); err == nil {
			c.Send(keeperMessage{End: true}) //nolint:errcheck // the keeper may be ending
			c.Close()
		}
		if time.Since(begun) > endPatience {
			wire.KillListener(o.path(networkFolder)) //nolint:errcheck // the next round tries again
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return errors.New("the keeper of the network does not end")
		}
	}
}

type keeperMessage struct {
	End     bool            // the keeper must end
	Watch   bool            // the keeper must keep the connection open as long as it runs
	Secrets []secret.Secret // more values of credentials; an empty answer follows
}

// lock takes the lock that a keeper holds for its life. more are flags of open(2) beside O_RDWR, such as O_CREATE for the keeper itself.
func (o networkOrder) lock(more int) (*os.File, error) {
	return hostfile.Lock(o.path(networkLockName), os.O_RDWR|more)
}

// keepNetwork is the role of the keeper of a network.
func keepNetwork(caller wire.Conn, o networkOrder) int {
	syscall.Umask(0o077)
	o.Spec = wire.UnpackSpec(o.Spec)
	o.Spec.Secrets = o.Secrets
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	lock, err := o.lock(os.O_CREATE)
	if err != nil {
		caller.Send(newNetworkAnswer(err)) //nolint:errcheck // the caller may be gone
		return 1
	}
	defer runtime.KeepAlive(lock) // the lock is released when the process ends, and not before
	k := networkKeeper{networkOrder: o}
	defer k.end()
	err = k.connect(ctx)
	if caller.Send(newNetworkAnswer(err)) != nil || err != nil {
		return 1
	}
	caller.Close()
	wire.Rest()
	k.await(ctx)
	return 0
}

// networkKeeper is the state of a network's keeper.
type networkKeeper struct {
	networkOrder
	engine  *engine
	state   networkState
	socket  wire.Conn
	network *usernet.Network
}

func (k *networkKeeper) end() {
	k.network.End()
	if k.socket.File != nil {
		k.socket.Close()
		os.Remove(filepath.Join(k.path(networkFolder), socketName)) // nobody listens any more
	}
}

// note records the id of the process that carries the packets.
func (k *networkKeeper) note(pid int) error {
	k.state.Relay = pid
	return hostfile.WriteRunning(k.path(networkStateName), k.state)
}

// connect lets a helper make the interface, and returns when packets are carried.
func (k *networkKeeper) connect(ctx context.Context) (err error) {
	if k.network, err = usernet.Start(k.Spec, k.note); err != nil {
		return err
	}
	// Who reaches the socket reads the network's state. Start has removed that of a killed keeper, which has other certificates.
	if err := k.listen(); err != nil {
		return err
	}
	connection, err := dialect.Connect(k.Host)
	if err != nil {
		return err
	}
	k.engine = &engine{connection}
	p, err := k.engine.Platform(ctx, k.Spec.Runtime)
	if err != nil {
		return err
	}
	c, err := k.engine.find(ctx, &state{Container: k.Owner})
	if err != nil {
		return err
	}
	if !inside.Runs(c) {
		return prison.ErrNotRunning
	}
	var old networkState
	if err := hostfile.ReadRunning(k.path(networkStateName), &old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	k.state = networkState{Owner: c.ID, Started: c.State.StartedAt}
	err = k.takeInterface(ctx, p, old.Owner == k.state.Owner && old.Started == k.state.Started)
	if err == nil && old.Owner != "" { // the network had another keeper: a start removes the old state
		go k.network.Recover()
	}
	return err
}

// listen makes the socket to which the helper connects.
func (k *networkKeeper) listen() (err error) {
	folder := k.path(networkFolder)
	if k.socket, err = wire.ListenIn(folder); err != nil {
		return err
	}
	return errors.Join(os.Chmod(folder, 0o711), os.Chmod(filepath.Join(folder, socketName), 0o666))
}

// takeInterface lets a helper make the interface, or become the other end of an existing one, and connects that end.
func (k *networkKeeper) takeInterface(ctx context.Context, p *dialect.Platform, exists bool) error {
	ctx, cancel := context.WithTimeout(ctx, tapPatience)
	defer cancel()
	made := make(chan error, 1)
	go func() {
		list := usernet.RemoteCalls(helperSocket+socketName, exists)
		results, err := k.engine.callBeside(ctx, p, k.networkOrder, list)
		if err == nil {
			err = usernet.CheckRemote(list, results)
		}
		if err != nil {
			cancel() // no interface will come
		}
		made <- err
	}()
	defer context.AfterFunc(ctx, func() { k.socket.SetReadDeadline(time.Now()) })()
	for came := false; !came; {
		link, err := k.socket.Accept()
		if err != nil {
			return failedInterface(<-made)
		}
		if came, err = k.receive(ctx, link); came && err != nil {
			return refusal(err)
		}
	}
	return failedInterface(<-made)
}

// receive connects the other end of the interface, if it arrives over the connection. Other programs may connect, too.
func (k *networkKeeper) receive(ctx context.Context, link wire.Conn) (came bool, err error) {
	defer link.Close()
	defer context.AfterFunc(ctx, func() { link.SetReadDeadline(time.Now()) })()
	_, err = wire.AwaitReady(link, wire.Handed{Tap: func(tap *os.File) error {
		if came = usernet.IsInterface(int(tap.Fd())); came {
			return errors.Join(k.network.Connect(tap), k.network.Await())
		}
		return tap.Close()
	}})
	return came, err
}

// failedInterface returns the refusal for a helper that could not make the interface.
func failedInterface(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*prison.Unavailable](err); ok {
		return err
	}
	mend := []string{"git airlock start --network none"}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED): // the socket's file exists, but nobody listens on this kernel
		return dialect.Unavailable("a network needs an engine on this machine's kernel, and this one runs its containers on another (as Docker Desktop does)",
			append([]string{"export DOCKER_HOST=" + client.DefaultDockerHost}, mend...)...)
	case strings.Contains(err.Error(), device):
		mend = append([]string{mendDevice}, mend...)
	}
	return dialect.Unavailable(fmt.Sprintf("the network could not be made: %v", err), mend...)
}

// await returns when the container with the interface has ended, or when somebody asks the keeper to end.
func (k *networkKeeper) await(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		k.engine.awaitEnd(ctx, k.Owner)
	}()
	go k.socket.Serve(func(c wire.Conn) { k.handle(c, cancel) })
	<-ctx.Done()
}

// handle reads a message from a connection, and does what it asks for.
func (k *networkKeeper) handle(c wire.Conn, end func()) {
	defer c.Close()
	var message keeperMessage
	c.SetReadDeadline(time.Now().Add(dialect.KillPatience)) // fails only for a closed connection
	if _, err := c.Recv(&message); err != nil {
		return
	}
	if message.End {
		end()
	}
	if len(message.Secrets) > 0 {
		k.network.Supply(message.Secrets)
		c.Send(networkAnswer{}) //nolint:errcheck // the caller may be gone
	}
	if message.Watch {
		c.SetReadDeadline(time.Time{}) // fails only for a closed connection
		<-c.Gone()
	}
}

// awaitEnd returns when a container no longer runs, or when ctx ends. If the engine does not answer, it tries again.
func (e *engine) awaitEnd(ctx context.Context, id string) {
	const pause = 3 * time.Second
	for ctx.Err() == nil {
		ended, errs := e.ContainerWait(ctx, id, container.WaitConditionNotRunning)
		select {
		case <-ended:
			return
		case err := <-errs:
			if dialect.Gone(err) {
				return
			}
		}
		if c, err := e.find(ctx, &state{Container: id}); err == nil && !inside.Runs(c) {
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}
