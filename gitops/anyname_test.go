package gitops

import (
	"encoding/json"
	"testing"
)

func TestNamesAreKeptAsJSON(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"refs/heads/main": `"refs/heads/main"`, "refs/heads/café": `"refs/heads/café"`, "": `""`, "\ufffd": `"�"`,
		"refs/heads/caf\xe9": `"\u0000refs/heads/café"`, "\xff\x80é": `"\u0000ÿ\u0080Ã©"`,
	} {
		text, err := json.Marshal(AnyName(name))
		check(t, err)
		var got AnyName
		check(t, json.Unmarshal(text, &got))
		if string(got) != name {
			t.Errorf("%q is read as %q", name, got)
		}
		var texts [2]string
		check(t, json.Unmarshal(text, &texts[0]))
		check(t, json.Unmarshal([]byte(want), &texts[1]))
		if texts[0] != texts[1] {
			t.Errorf("%q is written as %s, want %s", name, text, want)
		}
	}
}
