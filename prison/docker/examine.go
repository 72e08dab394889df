package docker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/prison"
)

// Examine implements [prison.Backend].
func (b *Backend) Examine(ctx context.Context) ([]prison.Finding, error) {
	e, err := b.connected(nil)
	if err != nil {
		return nil, err
	}
	findings := []prison.Finding{{Name: "engine's address", Value: e.host}}
	if err := e.awake(ctx); err != nil {
		return findings, err
	}
	p, err := e.platform(ctx, "")
	if err != nil {
		return findings, err
	}
	findings = append(findings,
		prison.Finding{Name: "engine", Value: fmt.Sprintf("%s %s, API %s", p.product(), p.ServerVersion, e.ClientVersion())},
		prison.Finding{Name: "runtimes", Value: fmt.Sprintf("%s; %s if none is asked for",
			strings.Join(slices.Sorted(maps.Keys(p.Runtimes)), ", "), p.DefaultRuntime)},
		prison.Finding{Name: "control groups", Value: fmt.Sprintf("version %s, driver %s", p.CgroupVersion, p.CgroupDriver)},
		prison.Finding{Name: "images", Value: fmt.Sprintf("%d on this machine", p.Images)},
	)
	plan, err := planner{platform: p, record: &record{}}.base(rolePrison)
	for _, lacking := range plan.weaker {
		findings = append(findings, prison.Finding{Name: "isolation", Value: "not all of it", Lack: lacking.Text})
	}
	return findings, err
}
