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
	names, size, err := b.reached(ctx, look, tip, known)
	many := errors.Is(err, ErrMany)
	if err != nil && !many {
		return err
	}
	names = append(names, also...)
	if !many && len(names) <= unpackLimit && size <= inHand {
		return b.hand(ctx, look, names)
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
	few := !many && len(names) <= unpackLimit
	if few || otherDevice(b.dir, dir) { // git cannot rename a pack across file systems
		return b.send(ctx, append(args, "--stdout"), list, few)
	}
	// The pack is written where it belongs: its objects are ready and need no second look. Until it is whole it is in the
	// bridge's own folder; git index-pack would leave a half one in the user's store when it is cut off.
	return b.Change(ctx, Call{Args: append(args, filepath.Join(dir, "pack")), Stdin: list, Stdout: io.Discard, Apart: true})
}

// reached lists what tip reaches and none of known does, and adds up the sizes of the files.
func (b *Bridge) reached(ctx context.Context, look *Inspector, tip OID, known []OID) (names []OID, size int64, err error) {
	if tip == "" {
		return nil, 0, nil
	}
	links, err := look.History(ctx, tip, func(id OID) bool { return slices.Contains(known, id) }, withoutLimits)
	if err != nil {
		return nil, 0, err
	}
	for _, l := range links {
		names = append(names, l.Commit)
	}
	err = look.Walk(ctx, links, withoutLimits, func(id OID, n int64) {
		names = append(names, id)
		size += n
	})
	return names, size, err
}

// hand gives a few objects through this process: git stores them as it does what it fetches.
func (b *Bridge) hand(ctx context.Context, look *Inspector, names []OID) error {
	if len(names) == 0 {
		return nil
	}
	objects := make([]object, len(names))
	for i, id := range names {
		var err error
		if objects[i], err = look.whole(ctx, id); err != nil {
			return err
		}
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
