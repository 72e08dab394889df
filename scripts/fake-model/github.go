package main

import "net/http"

// gitHubUser answers as GitHub does for the user of a token: with the server of copilot's models.
func gitHubUser(r *http.Request) object {
	server := "http://" + r.Host
	if r.Host == "api.github.com" {
		server = "https://api.individual.githubcopilot.com"
	}
	return object{"login": "demo", "copilot_plan": "individual", "chat_enabled": true, "cli_enabled": true, "is_mcp_enabled": false,
		"endpoints": object{"api": server}}
}

// copilotModels answers with one model, which speaks Chat Completions.
func copilotModels(*http.Request) object {
	const name = "gpt-5"
	return object{"data": []any{object{
		"id": name, "name": name, "object": "model", "vendor": "openai", "version": name, "model_picker_enabled": true,
		"policy": object{"state": "enabled"}, "supported_endpoints": []string{"/chat/completions"},
		"capabilities": object{
			"type": "chat", "family": name, "object": "model_capabilities", "tokenizer": "o200k_base",
			"limits":   object{"max_context_window_tokens": 128000, "max_prompt_tokens": 128000, "max_output_tokens": 16384},
			"supports": object{"streaming": true, "tool_calls": true, "parallel_tool_calls": true},
		},
	}}}
}
