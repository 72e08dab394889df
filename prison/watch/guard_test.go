package watch

import (
	"bytes"
	"context"
	"errors"
	"log"
	"strings"
	"testing"
	"time"
)

const megabyte = 1 << 20

// stage is a guard with simulated disks, clock and prison.
type stage struct {
	*Guard
	said     bytes.Buffer
	disks    map[string]space
	time     time.Time
	usage    Usage
	exported int64
	walks    int
	halts    int
	haltErr  error
	runs     bool
}

func newStage(t *testing.T) *stage {
	t.Helper()
	roomy := space{used: 1 << 30, free: 64 << 30, total: 100 << 30, inodesUsed: 1000, inodesFree: 1_000_000, inodes: 1_001_000}
	s := &stage{disks: map[string]space{"work": roomy, "repository": roomy}, time: time.Unix(1, 0), usage: Usage{Whole: true}}
	s.Guard = newGuard(Prison{
		Workspace: "work",
		Measure:   func(context.Context) (Usage, error) { s.walks++; return s.usage, nil },
		Exported:  func() int64 { return s.exported },
		Runs:      func(context.Context) bool { return s.runs },
		Halt:      func(context.Context) error { s.halts, s.runs = s.halts+1, s.haltErr != nil; return s.haltErr },
		Close:     func(context.Context) (bool, error) { return false, nil },
	}, log.New(&s.said, "", 0), func(path string) (space, error) {
		if d, there := s.disks[path]; there {
			return d, nil
		}
		return space{}, errors.New("no such disk")
	}, func() time.Time { return s.time })
	s.others = []disk{{Folder{"repository", "the repository"}, s.disks["repository"].floor(), s.disks["repository"]}}
	s.walked.then = s.walked.then.with(s.disks["repository"])
	s.Allow(100 * megabyte)
	return s
}

// grow lets the workspace's disk grow, and runs the guard's check until no walk is due.
func (s *stage) grow(ctx context.Context, bytes int64) {
	d := s.disks["work"]
	d.used, d.free = d.used+bytes, d.free-bytes
	s.disks["work"] = d
	s.check(ctx)
	for s.walk != nil {
		s.learn(ctx, <-s.walk)
		s.check(ctx)
	}
}

func (s *stage) heard() bool {
	select {
	case <-s.News():
		return true
	default:
		return false
	}
}

// TestLimit: a workspace above the limit stops the prison. The message names the limit and a sufficient one.
func TestLimit(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.usage.Bytes = 50 * megabyte
	if s.grow(t.Context(), 50*megabyte); s.walks != 0 || s.halts != 0 || s.Full() != nil {
		t.Fatalf("%d walks, %d halts: nothing can be too large yet", s.walks, s.halts)
	}
	s.usage.Bytes = 101 * megabyte
	s.grow(t.Context(), 60*megabyte)
	f := s.Full()
	if s.walks == 0 || s.halts != 1 || f == nil || !s.heard() {
		t.Fatalf("%d walks, %d halts, %+v", s.walks, s.halts, f)
	}
	if !strings.Contains(f.Message, "101 MB") || !strings.Contains(f.Message, "100 MB") || f.Enough != 2 || f.Disk != "" {
		t.Errorf("%+v", f)
	}
	// After a new start the agent may clean up, and the prison is not stopped for the old content.
	if s.grow(t.Context(), megabyte); s.halts != 1 {
		t.Errorf("%d halts", s.halts)
	}
	s.usage.Bytes, s.time = 10*megabyte, s.time.Add(time.Hour)
	if s.grow(t.Context(), -90*megabyte); s.Full() != nil || !s.heard() {
		t.Errorf("%+v", s.Full())
	}
}

// TestExported: exported commits count even if the workspace has removed them.
func TestExported(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.exported = 150 * megabyte
	if s.grow(t.Context(), 150*megabyte); s.halts != 1 || s.Full() == nil || !strings.Contains(s.Full().Message, "exported from") {
		t.Errorf("%d halts, %+v", s.halts, s.Full())
	}
}

// TestExportedWhileOthersFree: exported commits count without a pause, also if the disk has more space than before.
func TestExportedWhileOthersFree(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.grow(t.Context(), 10*megabyte)
	s.exported = 150 * megabyte
	if s.grow(t.Context(), -5*megabyte); s.halts != 1 || s.Full() == nil {
		t.Errorf("%d halts, %+v", s.halts, s.Full())
	}
}

// TestHidden: files that cannot be measured count as much as the disk has grown.
func TestHidden(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.usage.Whole = false
	if s.grow(t.Context(), 150*megabyte); s.halts != 1 || s.Full() == nil {
		t.Errorf("%d halts, %+v", s.halts, s.Full())
	}
}

// TestFullDisks: a full disk stops the prison at once, however small the workspace is, and the message names the
// disk.
func TestFullDisks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		disk   string
		change func(*space)
		want   Full
	}{
		"workspace":        {"work", func(s *space) { s.free = 10 * megabyte }, Full{Message: "the disk has 10 MB left", Disk: "work", Stops: 1}},
		"workspace, files": {"work", func(s *space) { s.inodesFree = 7 }, Full{Message: "the disk has room for 7 more files", Disk: "work", Inodes: true, Stops: 1}},
		"another":          {"repository", func(s *space) { s.free = 0 }, Full{Message: "the disk of the repository has 0 MB left", Disk: "repository", Stops: 1}},
		"another, files":   {"repository", func(s *space) { s.inodesFree = 1 }, Full{Message: "the disk of the repository has room for 1 more files", Disk: "repository", Stops: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			d := s.disks[c.disk]
			c.change(&d)
			s.disks[c.disk] = d
			s.grow(t.Context(), 0)
			if f := s.Full(); f == nil || *f != c.want || s.halts != 1 {
				t.Errorf("%+v, want %+v, %d halts", f, c.want, s.halts)
			}
		})
	}
}

// TestHaltFails: a disk that is gone does not count. A prison that did not stop is stopped again, the reason is known meanwhile, and each
// line is logged once.
func TestHaltFails(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	delete(s.disks, "repository")
	if s.grow(t.Context(), 0); s.halts != 0 {
		t.Errorf("%d halts for a disk that is gone", s.halts)
	}
	s.haltErr, s.exported = errors.New("busy"), 150*megabyte
	s.grow(t.Context(), 150*megabyte)
	s.check(t.Context())
	if f := s.Full(); f == nil || !f.Runs || s.halts < 2 || !s.heard() {
		t.Errorf("%d halts, %+v", s.halts, f)
	}
	if said := s.said.String(); strings.Count(said, "stop the prison: busy") != 1 || strings.Count(said, "exported from") != 1 {
		t.Errorf("%q", said)
	}
	s.haltErr = nil
	if s.check(t.Context()); s.Full().Runs || !s.heard() {
		t.Errorf("it is not tried again: %+v", s.Full())
	}
	halts := s.halts
	if s.check(t.Context()); s.halts != halts {
		t.Errorf("stopped once more after success")
	}
}

// TestFreeSpaceIsNoNews: the free space of a full disk changes all the time. It is one reason, with its first message.
func TestFreeSpaceIsNoNews(t *testing.T) {
	t.Parallel()
	for limited, want := range map[bool]string{false: "the disk has 10 MB left", true: "the workspace holds 150 MB, more than airlock.maxWorkspace allows (100 MB)"} {
		s := newStage(t)
		if limited {
			s.usage.Bytes = 150 * megabyte
			s.grow(t.Context(), 150*megabyte)
			s.heard()
		}
		for free := int64(10); free < 15; free++ {
			full := s.disks["work"]
			full.free = free * megabyte
			s.disks["work"] = full
			if s.check(t.Context()); s.heard() != (free == 10 && !limited) || s.Full().Message != want {
				t.Errorf("%d MB, limited %t: %+v", free, limited, s.Full())
			}
		}
	}
}

// TestSecondStop: a prison that was started again and is stopped again is news, with the present numbers and a log line, also if these
// are the same as before. Checks in between are not.
func TestSecondStop(t *testing.T) {
	t.Parallel()
	for name, fill := range map[string]func(*stage, int64){
		"limit": func(s *stage, stop int64) {
			s.usage.Bytes = stop * 150 * megabyte
			s.grow(t.Context(), 150*megabyte)
		},
		"disk": func(s *stage, _ int64) {
			full := s.disks["work"]
			full.free = 0
			s.disks["work"] = full
			s.check(t.Context())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			for stop := 1; stop <= 3; stop++ {
				s.runs, s.time = true, s.time.Add(time.Minute)
				fill(s, int64(stop))
				if f := s.Full(); f == nil || f.Stops != stop || !s.heard() || !strings.HasSuffix(s.said.String(), f.Message+"\n") {
					t.Errorf("stop %d: %+v, log %q", stop, f, s.said.String())
				}
				s.check(t.Context())
				if lines := strings.Count(s.said.String(), "\n"); lines != stop || s.heard() {
					t.Errorf("stop %d: %d lines are logged", stop, lines)
				}
			}
		})
	}
}

// TestStartingPrison: while the disk is full, a prison that was stopped and is starting does not answer yet. It is not stopped before it
// answers, or nobody would learn of that stop.
func TestStartingPrison(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	full := s.disks["work"]
	full.free = 0
	s.disks["work"] = full
	s.runs = true
	s.check(t.Context())
	s.heard()
	if s.check(t.Context()); s.halts != 1 || s.Full().Stops != 1 || s.heard() {
		t.Errorf("a prison that does not answer: %d halts, %+v", s.halts, s.Full())
	}
	s.runs = true
	if s.check(t.Context()); s.halts != 2 || s.Full().Stops != 2 || !s.heard() {
		t.Errorf("a prison that answers: %d halts, %+v", s.halts, s.Full())
	}
}
