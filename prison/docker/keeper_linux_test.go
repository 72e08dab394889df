package docker

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"syscall"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/dialect"
)

// TestFailedInterface checks the message about a network that cannot be made, when it has come from the keeper.
func TestFailedInterface(t *testing.T) {
	const none = "git airlock start --network none"
	down := dialect.Unavailable("the engine does not run", "sudo systemctl start docker")
	for _, c := range []struct {
		err  error
		mend []string
	}{
		{errors.New("start container: error gathering device information while adding custom device \"/dev/net/tun\""), []string{"sudo modprobe tun", none}},
		{fmt.Errorf("connect to the host: %w", syscall.ECONNREFUSED), []string{"export DOCKER_HOST=unix:///var/run/docker.sock", none}},
		{errors.New("send descriptor: it did not"), []string{none}},
		{down, []string{"sudo systemctl start docker"}},
	} {
		text, err := json.Marshal(newNetworkAnswer(failedInterface(c.err)))
		var a networkAnswer
		if err == nil {
			err = json.Unmarshal(text, &a)
		}
		if err != nil {
			t.Fatal(err)
		}
		var u *prison.Unavailable
		if err := a.err(); !errors.As(err, &u) || u.Backend != dialect.Name || u.Reason == "" || !reflect.DeepEqual(u.Mend, c.mend) {
			t.Errorf("%v: %v, %+v", c.err, err, u)
		}
	}
	if err := failedInterface(nil); err != nil {
		t.Error(err)
	}
	if err := newNetworkAnswer(errors.New("broken")).err(); err == nil || err.Error() != "broken" {
		t.Error(err)
	}
}
