package gitops

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// inHand bounds the bytes of objects that are given without a git that packs them.
const inHand = 4 << 20

// Give copies into the outer repository what tip reaches and none of known, outer commits, does, and some more objects of the
// bridge. Without a tip it is only those. look is an inspector of the bridge.
func (b *Bridge) Give(ctx context.Context, look *Inspector, tip OID, known []OID, also ...OID) error {
	names, err := b.reached(ctx, look, tip, known)
	many := errors.Is(err, ErrMany)
	if err != nil && !many {
		return err
	}
	names = append(names, also...)
	few := !many && len(names) <= unpackLimit
	if few {
		objects, err := look.small(ctx, names)
		if err != nil {
			return err
		}
		if len(objects) == len(names) {
			return b.hand(ctx, objects)
		}
	}
	if err := b.flush(ctx); err != nil {
		return err
	}
	args := []string{"pack-objects", "-q", "--window=0", "--delta-base-offset"}
	if many {
		names = slices.Concat([]OID{tip}, also, []OID{"--not"}, known)
		args = append(args, "--revs")
	}
	dir := filepath.Join(b.outer.CommonDir, "objects", "pack")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	list := strings.NewReader(strings.Join(texts(names), "\n") + "\n")
	if otherDevice(b.dir, dir) { // git cannot rename a pack across file systems
		return b.send(ctx, append(args, "--stdout"), list, few)
	}
	// The pack is written where it belongs: its objects are ready and need no second look, which takes seconds for a file of
	// hundreds of megabytes. Until it is whole it is in the bridge's own folder; git index-pack would leave a half one in the
	// user's store when it is cut off.
	return b.Change(ctx, Call{Args: append(args, filepath.Join(dir, "pack")), Stdin: list, Stdout: io.Discard, Apart: true})
}

// reached lists what tip reaches and none of known does.
func (b *Bridge) reached(ctx context.Context, look *Inspector, tip OID, known []OID) (names []OID, err error) {
	if tip == "" {
		return nil, nil
	}
	links, err := look.History(ctx, tip, func(id OID) bool { return slices.Contains(known, id) }, withoutLimits)
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		names = append(names, l.Commit)
	}
	return names, look.Walk(ctx, links, withoutLimits, func(id OID) { names = append(names, id) })
}

// small reads objects, as long as they are not too large to be held together.
func (i *Inspector) small(ctx context.Context, names []OID) ([]object, error) {
	var objects []object
	held := int64(0)
	for _, id := range names {
		_, size, err := i.info(ctx, id)
		if held += size; err != nil || held > inHand {
			return nil, err
		}
		o, err := i.whole(ctx, id)
		if err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
	return objects, nil
}

// hand gives objects through this process: git stores them as it does what it fetches.
func (b *Bridge) hand(ctx context.Context, objects []object) error {
	if len(objects) == 0 {
		return nil
	}
	return b.outer.durable().storePack(ctx, bytes.NewReader(packOf(b.outer.Format, objects)), true)
}

// send streams a pack of what is listed into the outer repository, few objects into files of their own.
func (b *Bridge) send(ctx context.Context, args []string, list io.Reader, few bool) error {
	from, w := io.Pipe()
	defer from.Close()
	done := make(chan error, 1)
	go func() {
		err := b.Look(ctx, Call{Args: args, Stdin: list, Stdout: w})
		w.CloseWithError(err)
		done <- err
	}()
	err := b.outer.durable().storePack(ctx, from, few)
	from.Close()
	if sent := <-done; sent != nil && !errors.Is(sent, io.ErrClosedPipe) {
		return sent
	}
	return err
}
