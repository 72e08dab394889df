package ui

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
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

// TestPrintJSONOfEmptyLists prints lists without entries wherever a document can have one. The document itself does not change.
func TestPrintJSONOfEmptyLists(t *testing.T) {
	type inner struct {
		List []string `json:"list"`
		Left []string `json:"left,omitempty"`
		none []string
	}
	type embedded struct {
		Deep []int `json:"deep"`
	}
	in := map[string]any{"airlocks": []inner{{}}, "version": 1, "b": struct {
		embedded
		To   *inner           `json:"to"`
		Nil  *inner           `json:"nil"`
		Of   map[string][]int `json:"of"`
		At   time.Time        `json:"at"`
		Raw  json.RawMessage  `json:"raw"`
		Any  any              `json:"any"`
		None any              `json:"none"`
	}{To: &inner{}, Of: map[string][]int{"<": nil}, Any: inner{none: nil}}}
	const want = `{"version":1,"airlocks":[{"list":[]}],"b":{"deep":[],"to":{"list":[]},"nil":null,"of":{"<":[]},` +
		`"at":"0001-01-01T00:00:00Z","raw":null,"any":{"list":[]},"none":null}}`
	for range 2 {
		var text, short bytes.Buffer
		if err := PrintJSON(&text, in); err != nil {
			t.Fatal(err)
		}
		if err := json.Compact(&short, text.Bytes()); err != nil || short.String() != want {
			t.Errorf("%s, %v, want\n%s", short.String(), err, want)
		}
	}
	if in["airlocks"].([]inner)[0].List != nil {
		t.Error("the document has changed")
	}
}
