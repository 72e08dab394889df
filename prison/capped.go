package prison

import "bytes"

// Capped keeps the first Max bytes of what is written to it, and takes the rest as well: what runs inside can write without end.
type Capped struct {
	Max  int
	kept bytes.Buffer // not embedded: io.Copy would find its ReadFrom, which has no bound
}

// Write implements [io.Writer].
func (c *Capped) Write(p []byte) (int, error) {
	c.kept.Write(p[:min(len(p), max(0, c.Max-c.kept.Len()))])
	return len(p), nil
}

// Bytes returns what was kept.
func (c *Capped) Bytes() []byte { return c.kept.Bytes() }

// String returns what was kept.
func (c *Capped) String() string { return c.kept.String() }
