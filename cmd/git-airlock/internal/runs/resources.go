package runs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/record"
)

const (
	// samplesName is a file of a slot with one line a measurement, as [sample] reads it.
	samplesName = "samples"
	// sampleSteps makes measurements rarer in a long run: the pause is this part of the time so far.
	sampleSteps = 900
)

// measure measures what the prison uses. ok is false if that is not possible.
func (k Keeper) measure(ctx context.Context) (u prison.Usage, ok bool) {
	m, ok := k.Prisons.Backend(k.Record).(prison.Measurer)
	if !ok {
		return u, false
	}
	spec, err := k.Prisons.Spec(k.Record)
	if err == nil {
		u, err = m.Usage(ctx, spec)
	}
	return u, err == nil
}

// sample appends a measurement to the file of a slot.
func (k Keeper) sample(slot int, u prison.Usage) {
	f, err := os.OpenFile(filepath.Join(k.folder(slot), samplesName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	cpu := u.CPU.Milliseconds()
	if u.CPU < 0 {
		cpu = -1
	}
	fmt.Fprintln(f, k.Now().UnixMilli(), cpu, u.Memory, u.Read, u.Written, u.Processes, u.Killed)
}

// Sample measures now.
func (a *Active) Sample(ctx context.Context) {
	if u, ok := a.keeper.measure(ctx); ok {
		a.keeper.sample(a.slot, u)
	}
}

// sampler measures the runs that are not over, less often the longer they last.
type sampler struct {
	begun, last map[int]time.Time // by slot
}

// tick measures if it is time to.
func (s *sampler) tick(ctx context.Context, k Keeper, slots []int) {
	now := k.Now()
	begun, last := map[int]time.Time{}, map[int]time.Time{}
	var due []int
	for _, slot := range slots {
		begun[slot], last[slot] = s.begun[slot], s.last[slot]
		if begun[slot].IsZero() {
			begun[slot] = now
		}
		if _, err := os.Lstat(filepath.Join(k.folder(slot), endName)); err == nil {
			continue // it is over
		}
		if now.Sub(last[slot]) >= now.Sub(begun[slot])/sampleSteps {
			due, last[slot] = append(due, slot), now
		}
	}
	s.begun, s.last = begun, last
	if len(due) == 0 {
		return
	}
	if u, ok := k.measure(ctx); ok {
		for _, slot := range due {
			k.sample(slot, u)
		}
	}
}

// growth returns a sum without what it was at the beginning of the run, or -1 if one of them is not known.
func growth(sum, before int64) int64 {
	if sum < 0 || before < 0 {
		return -1
	}
	return sum - before
}

// measurement reads a line of [Keeper.sample].
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
		g.visibility = append(g.visibility, "processor time and memory were not measured")
		return
	}
	var first, killed int64
	var base record.Sample
	var samples []record.Sample
	for line := range strings.Lines(string(content)) {
		s, kills, ok := measurement(line)
		if !ok {
			continue // its writer died
		}
		if samples == nil {
			base, first = s, kills
		}
		killed = max(killed, kills-first)
		s.Millis -= g.Manifest.Started.UnixMilli()
		s.CPU, s.Read, s.Written = growth(s.CPU, base.CPU), growth(s.Read, base.Read), growth(s.Written, base.Written)
		samples = append(samples, s)
	}
	if killed > 0 {
		g.hit("memory")
	}
	if !g.Prisons.Traits(g.Record).Images { // a container's control group counts it once
		g.visibility = append(g.visibility, record.UnseenShared)
	}
	g.put(record.ResourcesName, record.EncodeSamples(samples), record.File{})
}
