package filekind

import (
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	for content, text := range map[string]bool{
		"": true, "a": true, "#!/bin/sh\x00\x01": true, strings.Repeat("text ", 10) + "\x00": true, strings.Repeat("\u00e9", 40) + "\x00": true,
		"a\x00": false, strings.Repeat("\xe9", 40) + "\x00": false, strings.Repeat("a\x00", 40): false,
	} {
		if Text([]byte(content)) != text {
			t.Errorf("%q: want %t", content, text)
		}
	}
}
