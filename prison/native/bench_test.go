//go:build linux

package native_test

import (
	"testing"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/native"
	"github.com/git-airlock/git-airlock/prison/prisontest"
)

func benchSpec(b *testing.B) (prison.Backend, prison.Spec) {
	b.Helper()
	backend := native.New()
	if err := backend.Probe(b.Context()); err != nil {
		b.Skip(err)
	}
	s := prisontest.NewSpec(b, backend, options(b))
	if err := backend.Prepare(b.Context(), s); err != nil {
		b.Fatal(err)
	}
	return backend, s
}

func BenchmarkStartStop(b *testing.B) {
	backend, s := benchSpec(b)
	for b.Loop() {
		if _, err := backend.Start(b.Context(), s); err != nil {
			b.Fatal(err)
		}
		if err := backend.Stop(b.Context(), s); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpenClose(b *testing.B) {
	backend, s := benchSpec(b)
	s.ReadOnly = true
	for b.Loop() {
		p, err := backend.Open(b.Context(), s)
		if err != nil {
			b.Fatal(err)
		}
		p.Close()
	}
}

func BenchmarkExec(b *testing.B) {
	backend, s := benchSpec(b)
	if _, err := backend.Start(b.Context(), s); err != nil {
		b.Fatal(err)
	}
	p, err := backend.Attach(b.Context(), s)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if status, err := p.Exec(b.Context(), prison.Process{Argv: []string{"/bin/true"}}); err != nil || status != 0 {
			b.Fatal(status, err)
		}
	}
}

func BenchmarkProbe(b *testing.B) {
	backend, _ := benchSpec(b)
	for b.Loop() {
		if err := backend.Probe(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
