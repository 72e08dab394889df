package report_test

import (
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/promote/record"
)

// TestUnseenAnswers checks that a host has no bad answers in the report if the network has not read the answers of a connection to it.
func TestUnseenAnswers(t *testing.T) {
	request := record.Egress{Kind: control.KindRequest, Time: at(seconds(1)), Name: "a.example", Port: 80, Proto: control.ProtoHTTP, Verdict: control.VerdictAllow, Seen: control.SeenRequest, Status: 503}
	flow := record.Egress{Kind: control.KindFlow, Time: at(seconds(2)), Name: "a.example", Port: 443, Proto: control.ProtoTLS, Verdict: control.VerdictAllow, Seen: control.SeenOpaque}
	begun, failed, other, plain := flow, flow, flow, flow
	plain.Proto, plain.Port = control.ProtoHTTP, 80
	begun.Verdict, failed.Verdict, other.Name = control.VerdictBegun, control.VerdictFailed, "b.example"
	for name, c := range map[string]struct {
		beside record.Egress
		bad    bool
	}{
		"a connection": {flow, false}, "a connection that goes on": {begun, false}, "one that failed": {failed, true}, "one of another host": {other, true}, "a request": {request, true},
		"the connection of the request": {plain, true},
	} {
		v := short(t, func(_ *record.Manifest, files map[string][]byte) {
			files[record.EgressName] = lines(t, []record.Egress{request, c.beside})
		})
		if said := text(t, v); strings.Contains(said, "no good answer") != c.bad {
			t.Errorf("%s:\n%s", name, said)
		}
	}
}
