package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/record"
)

const (
	// samplesName is a file of a slot with one line a measurement, as [measurement] reads it.
	samplesName = "samples"
	// sampleSteps makes measurements rarer in a long run: the pause is this part of the time so far.
	sampleSteps = 900
)

// measure measures what the prison uses, and returns a line of [samplesName] for it, or an empty one if that is not possible. The time is
// when the measurement began: the daemon and a command measure at the same time, and the slower one writes last.
func (k Keeper) measure(ctx context.Context) (line string) {
	m, ok := k.Prisons.Backend(k.Record).(prison.Measurer)
	if !ok {
		return ""
	}
	at := k.Now().UnixMilli()
	u, err := m.Usage(ctx, k.Prisons.Spec(k.Record))
	if err != nil {
		return ""
	}
	cpu := u.CPU.Milliseconds()
	if u.CPU < 0 {
		cpu = -1
	}
	return fmt.Sprintln(at, cpu, u.Memory, u.Read, u.Written, u.Processes, u.Killed)
}

// sample measures what the prison uses for the runs in some slots. A run whose file cannot be written lacks this measurement.
func (k Keeper) sample(ctx context.Context, slots ...int) {
	line := k.measure(ctx)
	if line == "" {
		return
	}
	for _, slot := range slots {
		if f, err := os.OpenFile(filepath.Join(k.folder(slot), samplesName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err == nil {
			_, _ = f.WriteString(line)
			f.Close()
		}
	}
}

// Sample measures now.
func (a *Active) Sample(ctx context.Context) { a.keeper.sample(ctx, a.slot) }

// sampled has the times when the measurements of a run began, and when it was measured last.
type sampled struct{ begun, last time.Time }

// sampler measures the runs that are not over, less often the longer they last. It has their times by slot.
type sampler map[int]sampled

// tick measures if it is time to.
func (s sampler) tick(ctx context.Context, k Keeper, slots []int) {
	now := k.Now()
	maps.DeleteFunc(s, func(slot int, _ sampled) bool { return !slices.Contains(slots, slot) })
	var due []int
	for _, slot := range slots {
		if _, err := os.Lstat(filepath.Join(k.folder(slot), endName)); err == nil {
			continue // it is over
		}
		if t, known := s[slot]; !known {
			s[slot], due = sampled{now, now}, append(due, slot)
		} else if now.Sub(t.last) >= now.Sub(t.begun)/sampleSteps {
			s[slot], due = sampled{t.begun, now}, append(due, slot)
		}
	}
	if len(due) > 0 {
		k.sample(ctx, due...)
	}
}

// growth returns how much a sum has grown since the beginning of the run, or -1 if one of the two values is not known.
func growth(sum, before int64) int64 {
	if sum < 0 || before < 0 {
		return -1
	}
	return sum - before
}

// grown reads the measurements of a slot, and returns them in the order of their times. It subtracts the sums of the first measurement. It
// lets no sum fall, because a measurement can lack the times of processes that end during it. killed is the number of processes that
// were killed since the first measurement.
func grown(content string) (samples []record.Sample, killed int64) {
	type measured struct {
		record.Sample
		killed int64
	}
	var all []measured
	for line := range strings.Lines(content) {
		if s, killed, ok := measurement(line); ok { // otherwise its writer died
			all = append(all, measured{s, killed})
		}
	}
	slices.SortStableFunc(all, func(a, b measured) int { return cmp.Compare(a.Millis, b.Millis) })
	var last record.Sample
	for i, m := range all {
		killed = max(killed, m.killed-all[0].killed)
		m.CPU, m.Read, m.Written = growth(m.CPU, all[0].CPU), growth(m.Read, all[0].Read), growth(m.Written, all[0].Written)
		if i > 0 {
			m.CPU = max(m.CPU, last.CPU)
		}
		last = m.Sample
		samples = append(samples, last)
	}
	return samples, killed
}

// measurement reads a line of [Keeper.measure].
func measurement(line string) (s record.Sample, killed int64, ok bool) {
	fields := strings.Fields(line)
	to := []*int64{&s.Millis, &s.CPU, &s.Memory, &s.Read, &s.Written, &s.Processes, &killed}
	if len(fields) != len(to) {
		return s, 0, false
	}
	for i, field := range fields {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return s, 0, false
		}
		*to[i] = n
	}
	return s, killed, true
}

// resources adds what the prison used.
func (g *gathering) resources() {
	content, err := os.ReadFile(filepath.Join(g.folder(g.slot), samplesName))
	if err != nil {
		g.absent[record.ResourcesName] = "nothing was measured"
		if !errors.Is(err, fs.ErrNotExist) {
			g.absent[record.ResourcesName] = "the measurements cannot be read"
		}
		g.visibility = append(g.visibility, record.UnseenResources)
		return
	}
	samples, killed := grown(string(content))
	for i := range samples {
		samples[i].Millis -= g.Manifest.Started.UnixMilli()
	}
	if killed > 0 {
		g.hit("memory")
	}
	if !g.Prisons.Traits(g.Record).Images { // a container's control group counts it once
		g.visibility = append(g.visibility, record.UnseenShared)
	}
	g.put(record.ResourcesName, record.EncodeSamples(samples), record.File{})
}
