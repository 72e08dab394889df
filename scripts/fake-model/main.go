// Command fake-model is a small server that speaks the model APIs of coding agents: Anthropic Messages, OpenAI Responses and
// Chat Completions, and Gemini, and what copilot wants of GitHub. To the first request of a task it answers with one call of
// the agent's shell tool, which runs the command of --run, and to the next one with a closing sentence. With it, tests and
// demonstrations drive a real agent without an account and without a network.
//
// A request needs the key of --key, in the header of its API. Each request is logged as a line of JSON without its key: time, method,
// path, API and status. With --refuse and --slow, the server is one in trouble.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

func main() {
	var m model
	listen := flag.String("listen", "127.0.0.1:8089", "`address` to listen on")
	ready := flag.String("ready", "", "a `file` to create once the server listens")
	flag.StringVar(&m.key, "key", "", "the `key` that requests must have; default: any")
	flag.StringVar(&m.run, "run", "git commit --allow-empty -m 'Say hello'", "the `command` that the agent's shell is asked to run")
	flag.StringVar(&m.last, "say", "Done.", "the closing `sentence`")
	flag.IntVar(&m.refuse, "refuse", 0, "answer requests with this HTTP `status`, such as 401 or 429")
	flag.Int64Var(&m.times, "times", 0, "refuse only this `number` of requests; default: all")
	flag.DurationVar(&m.slow, "slow", 0, "wait this `time` before each event of an answer")
	flag.Parse()
	on, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", *listen)
	if err == nil && *ready != "" {
		err = os.WriteFile(*ready, nil, 0o644)
	}
	if err != nil {
		log.Fatal(err)
	}
	server := http.Server{Handler: &m, ReadHeaderTimeout: time.Minute}
	log.Fatal(server.Serve(on))
}

// model is what the server answers.
type model struct {
	key, run, last string
	refuse         int
	times          int64
	slow           time.Duration
	refused        atomic.Int64
}

// refuses reports whether the next request is refused.
func (m *model) refuses() bool {
	return m.refuse != 0 && (m.refused.Add(1) <= m.times || m.times == 0)
}

// request is the part of a request's body that matters, of all APIs.
type request struct {
	Model    string            `json:"model"`
	Stream   bool              `json:"stream"`
	Tools    []json.RawMessage `json:"tools"`
	Messages []json.RawMessage `json:"messages"` // Anthropic, Chat Completions
	Input    json.RawMessage   `json:"input"`    // Responses
	Contents []json.RawMessage `json:"contents"` // Gemini
	Inner    *request          `json:"request"`  // Gemini, with a login
	Config   struct {
		Schema *schema `json:"responseJsonSchema"`
	} `json:"generationConfig"` // Gemini
}

// schema is the part of a JSON schema that [schema.least] needs.
type schema struct {
	Type       string            `json:"type"`
	Enum       []any             `json:"enum"`
	Properties map[string]schema `json:"properties"`
}

// least returns a value of the schema.
func (s schema) least() any {
	switch {
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.Type == "object":
		all := object{}
		for name, of := range s.Properties {
			all[name] = of.least()
		}
		return all
	case s.Type == "boolean":
		return false
	case s.Type == "integer", s.Type == "number":
		return 0
	case s.Type == "array":
		return []any{}
	}
	return "none"
}

// maxBody is the maximum size of a request.
const maxBody = 64 << 20

// ServeHTTP implements [http.Handler].
func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	api := apiOf(r)
	status := m.answer(w, r, api)
	line, err := json.Marshal(map[string]any{"t": time.Now().UTC(), "method": r.Method, "path": r.URL.Path, "api": api.name, "status": status})
	if err == nil {
		fmt.Fprintf(os.Stderr, "%s\n", line)
	}
}

func (m *model) answer(w http.ResponseWriter, r *http.Request, a api) (status int) {
	refuse := func(status int, why string) int {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"type":"error","error":{"type":"error","message":%q}}`, why)
		return status
	}
	switch {
	case r.Header.Get("Upgrade") != "":
		return refuse(http.StatusUpgradeRequired, "no WebSockets here")
	case a.document == nil && (a.speak == nil || r.Method != http.MethodPost):
		return refuse(http.StatusNotFound, "no such path")
	case m.refuses():
		return refuse(m.refuse, "refused by --refuse")
	case m.key != "" && keyOf(r) != m.key:
		return refuse(http.StatusUnauthorized, "this is not the key")
	case a.document != nil:
		(&stream{to: w}).document(a.document(r))
		return http.StatusOK
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return refuse(http.StatusRequestEntityTooLarge, err.Error())
	}
	var q request
	if err := json.Unmarshal(body, &q); err != nil {
		return refuse(http.StatusBadRequest, err.Error())
	}
	if q.Inner != nil {
		q = *q.Inner
	}
	q.Stream = q.Stream || strings.Contains(r.URL.Path, ":stream")
	call, err := m.next(q)
	if err != nil {
		return refuse(http.StatusBadRequest, err.Error())
	}
	last := m.last
	if q.Config.Schema != nil { // such as the question which model is to work
		text, err := json.Marshal(q.Config.Schema.least())
		if err != nil {
			return refuse(http.StatusBadRequest, err.Error())
		}
		last = string(text)
	}
	a.speak(&stream{to: w, on: q.Stream, slow: m.slow}, q.Model, call, last)
	return http.StatusOK
}

// keyOf returns the key of a request, from the header of any of the APIs.
func keyOf(r *http.Request) string {
	for _, name := range []string{"X-Api-Key", "X-Goog-Api-Key"} {
		if key := r.Header.Get(name); key != "" {
			return key
		}
	}
	_, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return key
}

// call is a call of a tool.
type call struct {
	tool string
	args map[string]any
}

// json returns the arguments as JSON.
func (c call) json() string {
	text, err := json.Marshal(c.args)
	if err != nil {
		return "{}"
	}
	return string(text)
}

// shells are the names of the shell tools of agents, and the name of the argument with the command.
var shells = []struct{ tool, argument string }{
	{"Bash", "command"}, {"bash", "command"}, {"run_shell_command", "command"}, {"exec_command", "cmd"}, {"shell_command", "command"},
	{"execute_command", "command"}, {"shell", ""},
}

// next returns the call for a request, and nil for the closing sentence: the result of a call is there, or the request has no tools,
// such as one for a title.
func (m *model) next(q request) (*call, error) {
	said, err := json.Marshal([]any{q.Messages, q.Input, q.Contents})
	if err != nil {
		return nil, err
	}
	for _, result := range []string{`"tool_result"`, `"tool_call_id"`, `"function_call_output"`, `"functionResponse"`} {
		if strings.Contains(string(said), result) {
			return nil, nil
		}
	}
	if len(q.Tools) == 0 {
		return nil, nil
	}
	tools, err := json.Marshal(q.Tools)
	if err != nil {
		return nil, err
	}
	for _, s := range shells {
		if !strings.Contains(string(tools), fmt.Sprintf(`"name":%q`, s.tool)) {
			continue
		}
		args := map[string]any{s.argument: m.run, "description": "run a command"}
		switch s.tool {
		case "shell":
			args = map[string]any{"command": []string{"/bin/sh", "-c", m.run}}
		case "exec_command":
			args = map[string]any{"cmd": m.run}
		}
		return &call{s.tool, args}, nil
	}
	return nil, errors.New("the request has no shell tool that fake-model knows")
}
