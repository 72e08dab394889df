package prepare

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/prison"
)

// ill is a backend whose Examine fails.
type ill struct {
	prison.Backend
	name string
	err  error
}

func (b ill) Name() string                                      { return b.name }
func (b ill) Traits(string) prison.Traits                       { return prison.Traits{} }
func (b ill) Examine(context.Context) ([]prison.Finding, error) { return nil, b.err }

// TestDiagnoseOthers checks that doctor shows an unexpected error of a backend, and the next backend.
func TestDiagnoseOthers(t *testing.T) {
	d, err := diagnose(t.Context(), []prison.Backend{ill{name: "first", err: errors.New("500 \x1b[31m")}, ill{name: "second"}}, "")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	d.print(&out, ui.Paint(false))
	for _, want := range []string{"first: does not work: 500 \\u001b[31m\n", "second: works\n", "auto: takes second"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := diagnose(ended, []prison.Backend{ill{name: "first", err: context.Canceled}}, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
