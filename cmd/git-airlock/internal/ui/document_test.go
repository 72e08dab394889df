package ui

import (
	"bytes"
	"encoding/json"
	"testing"
)

// TestPrintJSON prints every character that is hidden in some font: the value stays, and the text is plain.
func TestPrintJSON(t *testing.T) {
	in := "a\u202eb\u200bc\u00e9\x1b\U000e0041\n\u2028\"<é"
	var text bytes.Buffer
	if err := PrintJSON(&text, map[string]string{"k": in}); err != nil {
		t.Fatal(err)
	}
	const want = `{
  "k": "a\u202eb\u200bcé\u001b\udb40\udc41\n\u2028\"<é"
}
`
	if text.String() != want {
		t.Errorf("%q", text.String())
	}
	var out map[string]string
	if err := json.Unmarshal(text.Bytes(), &out); err != nil || out["k"] != in {
		t.Errorf("%q, %v", out["k"], err)
	}
}
