package docker_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker"
	"github.com/git-airlock/git-airlock/prison/prisontest"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"
)

// laps are the measured times. The median is reported, since a single interruption would distort the mean.
type laps struct{ started, said []time.Duration }

func (l *laps) report(b *testing.B) {
	median := func(times []time.Duration) float64 {
		slices.Sort(times)
		return float64(times[len(times)/2].Microseconds()) / 1000
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(l.started), "ms-started")
	b.ReportMetric(median(l.said), "ms-median")
}

// BenchmarkFirst makes a new prison, and waits for the first output of a program in it.
func BenchmarkFirst(b *testing.B) {
	backend := docker.New("")
	if err := backend.CheckImage(b.Context(), testImage()); err != nil {
		b.Skip(err)
	}
	var l laps
	for b.Loop() {
		s := prisontest.NewSpec(b, backend, options())
		begun := time.Now()
		if err := backend.Prepare(b.Context(), s); err != nil {
			b.Fatal(err)
		}
		if _, err := backend.Start(b.Context(), s); err != nil {
			b.Fatal(err)
		}
		l.started = append(l.started, time.Since(begun))
		p, err := backend.Attach(b.Context(), s)
		if err != nil {
			b.Fatal(err)
		}
		if status, err := p.Exec(b.Context(), prison.Process{Argv: []string{"/bin/echo"}, Stdout: &bytes.Buffer{}}); err != nil || status != 0 {
			b.Fatal(status, err)
		}
		l.said = append(l.said, time.Since(begun))
		if err := backend.Stop(b.Context(), s); err != nil {
			b.Fatal(err)
		}
		if err := backend.Wipe(b.Context(), s); err != nil {
			b.Fatal(err)
		}
	}
	l.report(b)
}

// BenchmarkFirstPlain sends the engine the requests of docker run -d and docker exec.
func BenchmarkFirstPlain(b *testing.B) {
	e := engine(b)
	if _, err := e.ImageInspect(b.Context(), testImage()); err != nil {
		b.Skip(err)
	}
	var l laps
	for b.Loop() {
		begun := time.Now()
		c, err := e.ContainerCreate(b.Context(), &container.Config{Image: testImage(), Cmd: []string{"sleep", "600"}},
			&container.HostConfig{NetworkMode: "none"}, nil, nil, "")
		if err != nil {
			b.Fatal(err)
		}
		if err := e.ContainerStart(b.Context(), c.ID, container.StartOptions{}); err != nil {
			b.Fatal(err)
		}
		l.started = append(l.started, time.Since(begun))
		x, err := e.ContainerExecCreate(b.Context(), c.ID, container.ExecOptions{Cmd: []string{"/bin/echo"}, AttachStdout: true})
		if err != nil {
			b.Fatal(err)
		}
		stream, err := e.ContainerExecAttach(b.Context(), x.ID, container.ExecAttachOptions{})
		if err != nil {
			b.Fatal(err)
		}
		var out bytes.Buffer
		stdcopy.StdCopy(&out, &out, stream.Reader) // a failure shows in the output
		stream.Close()
		if out.String() != "\n" {
			b.Fatalf("it said %q", &out)
		}
		l.said = append(l.said, time.Since(begun))
		if err := e.ContainerRemove(b.Context(), c.ID, container.RemoveOptions{Force: true}); err != nil {
			b.Fatal(err)
		}
	}
	l.report(b)
}
