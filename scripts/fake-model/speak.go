package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// api is one of the APIs.
type api struct {
	name     string
	speak    func(out *stream, model string, c *call, last string)
	document func(r *http.Request) object // the whole answer of what is not about a task; nil for the others
}

// apiOf returns the API of a request. An unknown one has no name.
func apiOf(r *http.Request) api {
	path := r.URL.Path
	switch {
	case r.Method == http.MethodGet && path == "/copilot_internal/user":
		return api{name: "github", document: gitHubUser}
	case r.Method == http.MethodGet && path == "/models":
		return api{name: "github", document: copilotModels}
	case strings.HasSuffix(path, "/messages"):
		return api{name: "anthropic-messages", speak: anthropic}
	case strings.HasSuffix(path, "/chat/completions"):
		return api{name: "openai-chat", speak: chat}
	case strings.HasSuffix(path, "/responses"):
		return api{name: "openai-responses", speak: responses}
	case path == "/v1internal:loadCodeAssist":
		return api{name: "google-login", document: codeAssist}
	case strings.HasPrefix(path, "/v1internal:") && strings.HasSuffix(path, "enerateContent"):
		return api{name: "gemini-login", speak: geminiLogin}
	case strings.HasSuffix(path, "enerateContent"):
		return api{name: "gemini", speak: gemini}
	}
	return api{}
}

// object is a JSON object.
type object = map[string]any

// stream writes an answer: as server-sent events, or as one JSON document.
type stream struct {
	to    http.ResponseWriter
	on    bool
	begun bool
	slow  time.Duration // before each event
	// within is the name of the field that has the answer in a further object; empty for none.
	within string
}

// wrap returns an answer in its object.
func (s *stream) wrap(data any) any {
	if s.within != "" {
		return object{s.within: data}
	}
	return data
}

// event writes one event. An empty name writes data alone.
func (s *stream) event(name string, data any) {
	time.Sleep(s.slow)
	if !s.begun {
		s.to.Header().Set("Content-Type", "text/event-stream")
		s.begun = true
	}
	text, err := json.Marshal(s.wrap(data))
	if err != nil {
		return
	}
	if name != "" {
		fmt.Fprintf(s.to, "event: %s\n", name)
	}
	fmt.Fprintf(s.to, "data: %s\n\n", text)
	if f, ok := s.to.(http.Flusher); ok {
		f.Flush()
	}
}

// document writes the whole answer.
func (s *stream) document(data any) {
	time.Sleep(s.slow)
	s.to.Header().Set("Content-Type", "application/json")
	json.NewEncoder(s.to).Encode(s.wrap(data)) //nolint:errcheck // the client has gone
}

// anthropic answers as the Messages API does.
func anthropic(out *stream, model string, c *call, last string) {
	block, delta, reason := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": last}, "end_turn"
	whole := object{"type": "text", "text": last}
	if c != nil {
		block = object{"type": "tool_use", "id": "toolu_1", "name": c.tool, "input": object{}}
		delta, reason = object{"type": "input_json_delta", "partial_json": c.json()}, "tool_use"
		whole = object{"type": "tool_use", "id": "toolu_1", "name": c.tool, "input": c.args}
	}
	message := object{"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": object{"input_tokens": 1, "output_tokens": 1}}
	if !out.on {
		message["content"], message["stop_reason"] = []any{whole}, reason
		out.document(message)
		return
	}
	out.event("message_start", object{"type": "message_start", "message": message})
	out.event("content_block_start", object{"type": "content_block_start", "index": 0, "content_block": block})
	out.event("content_block_delta", object{"type": "content_block_delta", "index": 0, "delta": delta})
	out.event("content_block_stop", object{"type": "content_block_stop", "index": 0})
	out.event("message_delta", object{"type": "message_delta", "delta": object{"stop_reason": reason, "stop_sequence": nil}, "usage": object{"output_tokens": 1}})
	out.event("message_stop", object{"type": "message_stop"})
}

// chat answers as the Chat Completions API does.
func chat(out *stream, model string, c *call, last string) {
	message, reason := object{"role": "assistant", "content": last}, "stop"
	if c != nil {
		message["content"], reason = nil, "tool_calls"
		message["tool_calls"] = []any{object{"index": 0, "id": "call_1", "type": "function", "function": object{"name": c.tool, "arguments": c.json()}}}
	}
	usage := object{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
	head := object{"id": "chatcmpl-1", "created": 1, "model": model}
	if !out.on {
		head["object"], head["usage"] = "chat.completion", usage
		head["choices"] = []any{object{"index": 0, "message": message, "finish_reason": reason}}
		out.document(head)
		return
	}
	head["object"] = "chat.completion.chunk"
	head["choices"] = []any{object{"index": 0, "delta": message, "finish_reason": nil}}
	out.event("", head)
	head["choices"], head["usage"] = []any{object{"index": 0, "delta": object{}, "finish_reason": reason}}, usage
	out.event("", head)
	fmt.Fprint(out.to, "data: [DONE]\n\n")
}

// responses answers as the Responses API does.
func responses(out *stream, model string, c *call, last string) {
	item := object{"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
		"content": []any{object{"type": "output_text", "text": last, "annotations": []any{}}}}
	if c != nil {
		item = object{"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": c.tool, "arguments": c.json(), "status": "completed"}
	}
	response := object{"id": "resp_1", "object": "response", "created_at": 1, "model": model, "status": "in_progress", "output": []any{}}
	done := object{"id": "resp_1", "object": "response", "created_at": 1, "model": model, "status": "completed", "output": []any{item},
		"usage": object{"input_tokens": 1, "input_tokens_details": object{"cached_tokens": 0}, "output_tokens": 1,
			"output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": 2}}
	if !out.on {
		out.document(done)
		return
	}
	out.event("response.created", object{"type": "response.created", "sequence_number": 0, "response": response})
	out.event("response.output_item.added", object{"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": item})
	if c == nil {
		out.event("response.output_text.delta", object{"type": "response.output_text.delta", "sequence_number": 2, "item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": last})
	}
	out.event("response.output_item.done", object{"type": "response.output_item.done", "sequence_number": 3, "output_index": 0, "item": item})
	out.event("response.completed", object{"type": "response.completed", "sequence_number": 4, "response": done})
}

// codeAssist answers as the service of a login with Google does for its user.
func codeAssist(*http.Request) object {
	return object{"currentTier": object{"id": "standard-tier"}, "cloudaicompanionProject": "demo"}
}

// geminiLogin answers as gemini does, and in an object of the service of a login.
func geminiLogin(out *stream, model string, c *call, last string) {
	out.within = "response"
	gemini(out, model, c, last)
}

// gemini answers as generateContent and streamGenerateContent do.
func gemini(out *stream, _ string, c *call, last string) {
	part := object{"text": last}
	if c != nil {
		part = object{"functionCall": object{"name": c.tool, "args": c.args}}
	}
	answer := object{
		"candidates":    []any{object{"index": 0, "finishReason": "STOP", "content": object{"role": "model", "parts": []any{part}}}},
		"usageMetadata": object{"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
	}
	if !out.on {
		out.document(answer)
		return
	}
	out.event("", answer)
}
