package verdict

import (
	"bytes"
	"strings"
	"testing"
)

// TestLongMessages compares long messages that differ at their ends.
func TestLongMessages(t *testing.T) {
	lines := strings.Repeat("a line\n", 5000)
	var out bytes.Buffer
	if part := printMessages(&out, []byte(lines+"before\n"), []byte(lines+"after")); part || !strings.HasSuffix(out.String(), "+a line\n+after\n") ||
		strings.Count(out.String(), "\n") != 10003 || !strings.Contains(out.String(), "-before\n+a line") {
		t.Errorf("part %v, %d lines, %.80q", part, strings.Count(out.String(), "\n"), out.String())
	}
	out.Reset()
	long := strings.Repeat("ü", 10_000) + "\x1b\xff"
	if printMessages(&out, []byte("x"), []byte(long)) || out.String() != "message:\n-x\n+"+strings.Repeat("ü", 10_000)+`\u001b\xff`+"\n" {
		t.Errorf("a long line: %d bytes", out.Len())
	}
	out.Reset()
	if part := printMessages(&out, []byte("x"), bytes.Repeat([]byte("y"), MessageLimit+7)); !part || !strings.HasSuffix(out.String(), "y\n(7 bytes of this message are left out)\n") {
		t.Errorf("part %v, %d bytes", part, out.Len())
	}
}
