package quarantine

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/packing"
)

// inHand bounds the bytes of objects that are packed in process.
const inHand = 4 << 20

// Give copies objects into the outer repository: those that tip reaches and known, which are outer commits, do not
// reach, and some more objects of the bridge. Without a tip it copies only the latter. inspector must be one of the
// bridge. When Give returns, all these objects are verified to be in the outer store, in a kept pack, see [Handover].
// The caller releases the pack.
func (b *Bridge) Give(ctx context.Context, inspector *Inspector, tip gitops.OID, known []gitops.OID, also ...gitops.OID) error {
	if b.outer.Dry {
		return gitops.ErrDryRun
	}
	names, err := b.reached(ctx, inspector, tip, known)
	if errors.Is(err, ErrMany) {
		return b.Again(ctx, tip, known, also...)
	}
	if names = append(names, also...); err != nil || len(names) == 0 {
		return err
	}
	base, err := b.packListed(ctx, inspector, names)
	if err != nil {
		return err
	}
	name, err := b.handover.install(ctx, base)
	if err != nil {
		return err
	}
	return b.handover.prove(name, names)
}

// Again copies objects into the outer repository, even if it has them: those that tip reaches and known do not reach, and those in also. Until
// [Handover.Release], a running git gc cannot remove them, whatever refs it has read.
func (b *Bridge) Again(ctx context.Context, tip gitops.OID, known []gitops.OID, also ...gitops.OID) error {
	if b.outer.Dry {
		return gitops.ErrDryRun
	}
	base, err := b.pack(ctx, slices.Concat([]gitops.OID{tip}, also, []gitops.OID{"--not"}, known), "--revs")
	if err != nil {
		return err
	}
	name, err := b.handover.install(ctx, base)
	if err != nil {
		return err
	}
	return errors.Join(b.handover.prove(name, append(also, tip)), connected(ctx, b.outer, []gitops.OID{tip}, known))
}

// packListed makes a pack of objects, in process if they are few and small. It returns the pack's path without
// extension.
func (b *Bridge) packListed(ctx context.Context, inspector *Inspector, names []gitops.OID) (string, error) {
	if len(names) > packedHere {
		return b.pack(ctx, names)
	}
	objects, err := inspector.small(ctx, names)
	if err != nil {
		return "", err
	}
	if len(objects) < len(names) {
		return b.pack(ctx, names)
	}
	if err := packing.Check(b.outer.Format, objects, names); err != nil {
		return "", err
	}
	pack, at := packing.Pack(b.outer.Format, objects)
	index := packing.Index(b.outer.Format, pack, at, names)
	base := filepath.Join(b.handover.dir, "new")
	return base, gitops.Together( // the file system writes both at once
		func() error { return writeNew(base+".pack", pack) },
		func() error { return writeNew(base+".idx", index) })
}

// packedHere is the maximum number of objects that are packed in process.
const packedHere = 100

// writeNew creates a file that is never changed afterwards, durably.
func writeNew(name string, content []byte) error {
	if err := gitops.Unless(os.Remove(name), os.ErrNotExist); err != nil { // from before a crash
		return err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o444)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

// pack makes git pack the listed objects, or revisions with --revs. It returns the pack's path without extension.
func (b *Bridge) pack(ctx context.Context, list []gitops.OID, flags ...string) (string, error) {
	if err := b.flush(ctx); err != nil {
		return "", err
	}
	base := filepath.Join(b.handover.dir, "new")
	args := append([]string{"pack-objects", "-q", "--window=0", "--delta-base-offset"}, flags...)
	var name bytes.Buffer
	err := b.Change(ctx, gitops.Call{Args: append(args, base), Stdin: strings.NewReader(gitops.Lines(list)), Stdout: &name, Apart: true})
	return base + "-" + strings.TrimSpace(name.String()), err
}

// reached lists the objects that tip reaches and known do not reach.
func (b *Bridge) reached(ctx context.Context, inspector *Inspector, tip gitops.OID, known []gitops.OID) (names []gitops.OID, err error) {
	if tip == "" {
		return nil, nil
	}
	links, err := inspector.History(ctx, tip, func(id gitops.OID) bool { return slices.Contains(known, id) }, WithoutLimits)
	if err != nil {
		return nil, err
	}
	names = Commits(links)
	err = inspector.Walk(ctx, links, WithoutLimits, func(id gitops.OID) { names = append(names, id) })
	return names, err
}

// small reads objects, unless they are too large to be held in memory together.
func (i *Inspector) small(ctx context.Context, names []gitops.OID) ([]object, error) {
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
