package inside

import (
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison/docker/dialect"
	"github.com/git-airlock/git-airlock/prison/hostfile"
)

// engineAnswering returns the connection to an engine that gives the same answer about every command.
func engineAnswering(t *testing.T, answer string) *dialect.Engine {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/exec/") {
			io.WriteString(w, answer)
		}
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	e, err := dialect.Connect("unix://" + socket)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestStateOfLaunched reads the state of a launched command from an engine's answers. An engine opens the streams of a command before it
// starts the process, and until then reports that the command does not run.
func TestStateOfLaunched(t *testing.T) {
	for what, c := range map[string]struct {
		answer string
		kept   bool
		want   Launched
	}{
		"being started":            {`{"Running":false,"ExitCode":null,"Pid":0}`, true, Launched{}},
		"running":                  {`{"Running":true,"ExitCode":null,"Pid":7}`, true, Launched{}},
		"running without a keeper": {`{"Running":true,"ExitCode":null,"Pid":7}`, false, Launched{}},
		"ended":                    {`{"Running":false,"ExitCode":0,"Pid":7}`, true, Launched{Exited: true}},
		"ended, Podman":            {`{"Running":false,"ExitCode":0,"Pid":0}`, false, Launched{Exited: true}},
		"ended in an error":        {`{"Running":false,"ExitCode":3,"Pid":7}`, true, Launched{Exited: true, Status: 3}},
		"could not be started":     {`{"Running":false,"ExitCode":126,"Pid":0}`, true, Launched{Exited: true, Status: 126}},
	} {
		dir := t.TempDir()
		if c.kept {
			l, err := net.Listen("unix", filepath.Join(dir, socketName))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
		}
		if err := hostfile.Write(filepath.Join(dir, commandName), Launched{Exec: "1"}); err != nil {
			t.Fatal(err)
		}
		r := &Container{Engine: engineAnswering(t, c.answer), ID: "box", HostDir: dir}
		l, err := r.State(t.Context())
		if err != nil || l.Exited != c.want.Exited || l.Status != c.want.Status {
			t.Errorf("%s: %+v, %v", what, l, err)
		}
		if stored, err := ReadLaunched(dir); err != nil || stored.Exited != c.want.Exited {
			t.Errorf("%s: stored %+v, %v", what, stored, err)
		}
	}
}
