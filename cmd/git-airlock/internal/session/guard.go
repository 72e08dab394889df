package session

import (
	"context"
	"fmt"
	"log"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/watch"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/daemon"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// daemonConfig returns what the daemon of an airlock runs with: an engine, and a guard of its prison beside it.
func (s *Session) daemonConfig(r airlock.Record, logger *log.Logger) daemon.Config {
	e := s.Engine(r)
	g := watch.New(s.guarded(r), logger)
	e.Guard = diskGuard{g}
	return daemon.Config{Engine: e, Log: logger, Guard: g.Run, News: g.News()}
}

// guarded returns what a guard needs to know of an airlock's prison.
func (s *Session) guarded(r airlock.Record) watch.Prison {
	dir, prisons := s.Store.Dir(r.ID), s.prisons()
	p := watch.Prison{
		Workspace: s.Store.Workspace(r),
		Measure:   func(ctx context.Context) (watch.Usage, error) { return prisons.measure(ctx, r) },
		Exported:  func() int64 { return gitops.OpenQuarantine(promote.QuarantineDir(dir), r.Format).Size() },
		Halt:      func(ctx context.Context) error { return prisons.stop(ctx, r) },
		Close:     func(ctx context.Context) (bool, error) { return prisons.fixWorkspaceMode(ctx, r) },
	}
	if spec, err := prisons.spec(r); err == nil {
		p.Others = append(p.Others, watch.Folder{Path: prisons.backend(r).HomeDisk(spec), Of: "the agent's home"})
	}
	p.Others = append(p.Others, watch.Folder{Path: dir, Of: "the repository"})
	return p
}

// measure measures workspace and home, with an exporter of its own: another one may be busy for as long as the agent
// likes.
func (p prisons) measure(ctx context.Context, r airlock.Record) (watch.Usage, error) {
	exporter, err := p.openExporter(ctx, r)
	if err != nil {
		return watch.Usage{}, err
	}
	defer exporter.Close()
	u, err := exporter.Usage(ctx)
	return watch.Usage{Bytes: u.Bytes, Inodes: u.Inodes, Beside: u.Beside, Whole: u.Whole, Took: u.Took}, err
}

// diskGuard words what a guard found as a hold.
type diskGuard struct{ *watch.Guard }

func (g diskGuard) Full() *ledger.Hold {
	full := g.Guard.Full()
	if full == nil {
		return nil
	}
	next := "df -h " + gitops.Pasteable(full.Disk)
	switch {
	case full.Enough > 0:
		next = fmt.Sprintf("git config airlock.maxWorkspace %dg", full.Enough)
	case full.Inodes:
		next = "df -i " + gitops.Pasteable(full.Disk)
	}
	return &ledger.Hold{Reason: ledger.WorkspaceFull, Message: full.Message, Next: []string{next, "git airlock start"}}
}
