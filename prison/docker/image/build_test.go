package image

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison/docker/dialect"
)

// TestPrintedStepsAreOutput checks that lines of a step which look like the beginning of another step are output.
func TestPrintedStepsAreOutput(t *testing.T) {
	var told []Step
	f := follower{progress: func(s Step) { told = append(told, s) }}
	for _, line := range []string{
		"Step 1/3 : FROM base", " ---> 0123456789ab",
		"Step 2/3 : RUN sh a", "Step 9/1 : x", "Step 3/9 : x", "Step 2/3 : x", "Step 99999999999999999999/3 : x", "Step 0/3 : x",
		"Step 3/3 : RUN sh b",
	} {
		f.line(line)
	}
	begun := slices.DeleteFunc(told, func(s Step) bool { return s.Said != "" })
	want := []Step{{Number: 1, Of: 3, What: "FROM base"}, {Number: 2, Of: 3, What: "RUN sh a"}, {Number: 3, Of: 3, What: "RUN sh b"}}
	if !slices.Equal(begun, want) {
		t.Errorf("%+v", begun)
	}
}

// TestOutputInSeveralMessages checks that the lines of a step's output have no colours and do not end with a message. The builder's own
// lines begin with a message, also after output without a line end.
func TestOutputInSeveralMessages(t *testing.T) {
	var stream strings.Builder
	for _, text := range []string{
		"Step 1/3 : FROM base", "\n", " ---> 0123456789ab\n", "Step 2/3 : RUN printf done\n", " ---> Running in 0123456789ab\n", "do", "ne",
		" ---> aaaaaaaaaaaa\n", "Step 3/3 : RUN apt-get install nothing\n", "10%\r", "100%\r\n",
		"\x1b[91mE\x1b[0m", "\x1b[91m: \x1b[0m", "\x1b[91mUnable to locate package nothing\n\x1b[0m", "the end", "",
	} {
		json.NewEncoder(&stream).Encode(map[string]string{"stream": text})
	}
	json.NewEncoder(&stream).Encode(map[string]string{"error": "status 100"})
	var told []string
	f := follower{progress: func(s Step) { told = append(told, s.Said) }}
	var failed *BuildError
	if err := f.read(strings.NewReader(stream.String())); !errors.As(err, &failed) || failed.Number != 3 {
		t.Fatal(err)
	}
	if want := []string{"10%", "100%", "E: Unable to locate package nothing", "the end"}; !slices.Equal(failed.Output, want) {
		t.Errorf("output %q, want %q", failed.Output, want)
	}
	if !slices.Contains(told, "done") || !slices.Equal(f.made, []string{"aaaaaaaaaaaa"}) {
		t.Errorf("told %q, made %q", told, f.made)
	}
}

// TestSweptContainerStays builds while the engine can neither remove nor describe the containers that killed builds have left.
func TestSweptContainerStays(t *testing.T) {
	var removed []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v"), "/")
		switch {
		case r.URL.Path == "/_ping":
			w.Header().Set("Api-Version", "1.41")
		case strings.HasSuffix(r.URL.Path, "/info"):
			path = `{"OSType": "linux"}`
		case path == "containers/json":
			path = `[{"Id": "unknown", "State": "exited", "Created": 1}, {"Id": "stuck", "State": "dead", "Created": 1}]`
		case path == "containers/stuck/json":
			path = `{"Id": "stuck", "HostConfig": {"ExtraHosts": ["` + newMark() + `"]}}`
		case path == "images/json":
			path = `[]`
		case path == "build":
			path = `{"stream": "Successfully built"}`
		default:
			if r.Method == http.MethodDelete {
				removed = append(removed, path)
			}
			w.WriteHeader(http.StatusInternalServerError)
			path = `{"message": "driver failed to remove root filesystem"}`
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, path)
	}))
	defer server.Close()
	s := Store{NotOf: "label", Connect: func(context.Context) (*dialect.Engine, error) {
		return dialect.Connect("tcp://" + server.Listener.Addr().String())
	}}
	if err := s.BuildImage(t.Context(), Build{Name: BuiltName("00000000", strings.Repeat("a", 24)), Dockerfile: []byte("FROM scratch\n")}); err != nil {
		t.Error(err)
	}
	if want := []string{"containers/stuck"}; !slices.Equal(removed, want) {
		t.Errorf("removed %q, want %q", removed, want)
	}
}
