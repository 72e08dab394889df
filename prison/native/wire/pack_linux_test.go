package wire

import (
	"reflect"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
)

// TestPackSpec packs and unpacks a spec, which must stay the same.
func TestPackSpec(t *testing.T) {
	t.Parallel()
	s := prison.Spec{ID: "id", Dir: "/d\xff", Workspace: "/w", User: "u", Hostname: "h", Root: "/r", Env: []string{"A=\xff"}, Deny: []string{"/n"},
		Tools: []prison.Tool{{Name: "t\xff", Path: "/t", Optional: true}, {Name: "u", Path: "/u"}}, UID: 5}
	if got := UnpackSpec(PackSpec(s)); !reflect.DeepEqual(got, s) {
		t.Errorf("%+v, want %+v", got, s)
	}
	if s.Tools[0].Name != "t\xff" {
		t.Error("the spec of the caller has changed")
	}
}
