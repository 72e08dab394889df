package prison

import "bytes"

// Capped keeps the first Max bytes written to it and discards the rest, because a process in the prison can write
// without end.
type Capped struct {
	Max  int
	kept bytes.Buffer // not embedded, because io.Copy would use its ReadFrom, which has no limit
}

// Write implements [io.Writer].
func (c *Capped) Write(p []byte) (int, error) {
	c.kept.Write(p[:min(len(p), max(0, c.Max-c.kept.Len()))])
	return len(p), nil
}

// Bytes returns the kept bytes.
func (c *Capped) Bytes() []byte { return c.kept.Bytes() }

// String returns the kept bytes as a string.
func (c *Capped) String() string { return c.kept.String() }
