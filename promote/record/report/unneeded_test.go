package report_test

import (
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/promote/record/report"
)

// TestUnneededHosts checks that the refusal of a host that the agent works without is apart from the verdict, unless a rule denied the host.
func TestUnneededHosts(t *testing.T) {
	of := func(reason string, recorded bool) report.View {
		return short(t, func(m *record.Manifest, files map[string][]byte) {
			m.Agent, m.Unneeded = "opencode", []string{"registry.example"}
			refused := record.Egress{Kind: control.KindRefusal, Time: at(seconds(1)), Name: "registry.example", Port: 443, Verdict: control.VerdictDeny, Reason: reason, Count: 3}
			event := record.Event{Time: refused.Time, Level: record.Warning, Kind: record.EventDenied, Text: "refused", Data: map[string]string{"host": refused.Name, "reason": reason}}
			files[record.EventsName] = lines(t, []record.Event{event})
			delete(files, record.EgressName)
			if recorded {
				files[record.EgressName] = lines(t, []record.Egress{refused})
			}
		})
	}
	for _, recorded := range []bool{true, false} {
		v := of(control.ReasonNoRule, recorded)
		if said := text(t, v); strings.Contains(said, "×") || v.Level == report.Bad || strings.Contains(v.Verdict.Raw(), "refused") {
			t.Errorf("recorded %t: the refusal is bad:\n%s", recorded, said)
		}
		if other := of(control.ReasonDenied, recorded); other.Level != report.Bad {
			t.Errorf("recorded %t: a denial is %s", recorded, other.Level)
		}
	}
	v := of(control.ReasonNoRule, true)
	has(t, text(t, v), "· refused: opencode asks for this host by itself, and works without it registry.example: 3 connections")
	has(t, answer(t, v, "Refused"), "registry.example, 3 times: opencode asks for this host by itself, and works without it")
}
