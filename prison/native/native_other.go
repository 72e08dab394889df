//go:build !linux

package native

import (
	"context"
	"io"
	"runtime"

	"github.com/git-airlock/git-airlock/prison"
)

// New returns a backend that is never available, since namespaces exist only on Linux.
func New() prison.Backend { return absent{} }

type absent struct{}

var errAbsent = &prison.Unavailable{Backend: "native", Reason: "it needs Linux, this is " + runtime.GOOS}

func (absent) Name() string                               { return "native" }
func (absent) Traits(string) prison.Traits                { return prison.Traits{Overlay: true, HostKernel: true} }
func (absent) Probe(context.Context) error                { return errAbsent }
func (absent) ProbeOf(context.Context, prison.Spec) error { return errAbsent }
func (absent) Examine(context.Context) ([]prison.Finding, error) {
	return []prison.Finding{{Name: "system", Value: runtime.GOOS}}, errAbsent
}
func (absent) Prepare(context.Context, prison.Spec) error { return errAbsent }
func (absent) Stop(context.Context, prison.Spec) error    { return errAbsent }
func (absent) Wipe(context.Context, prison.Spec) error    { return errAbsent }
func (absent) Start(context.Context, prison.Spec) (prison.Isolation, error) {
	return prison.Isolation{}, errAbsent
}
func (absent) Open(context.Context, prison.Spec) (prison.Prison, error) { return nil, errAbsent }
func (absent) OpenHome(context.Context, prison.Spec) (prison.Prison, error) {
	return nil, errAbsent
}
func (absent) HomeDisk(prison.Spec) string                                { return "" }
func (absent) Attach(context.Context, prison.Spec) (prison.Prison, error) { return nil, errAbsent }
func (absent) Launched(context.Context, prison.Spec) (*prison.Launched, error) {
	return nil, errAbsent
}
func (absent) Shown(context.Context, prison.Spec) (io.ReadCloser, error) { return nil, errAbsent }
