//go:build linux

package native

import (
	"bytes"
	"testing"
)

// packetTo is an Ethernet frame with the beginning of an IPv4 packet.
func packetTo(a, b, c, d byte) []byte {
	frame := make([]byte, ethernetHeader+ipv4Header)
	frame[12], frame[13], frame[ethernetHeader] = 8, 0, 0x45
	copy(frame[ethernetHeader+16:], []byte{a, b, c, d})
	return frame
}

func TestMayLeave(t *testing.T) {
	question := arp(1, ownMAC, ownAddress, [6]byte{}, gatewayAddress)
	version6 := packetTo(192, 0, 2, 1)
	version6[ethernetHeader] = 0x65
	tagged := append(append(bytes.Repeat([]byte{1}, 12), 0x81, 0, 0, 1), packetTo(192, 0, 2, 1)[12:]...)
	for name, c := range map[string]struct {
		frame []byte
		want  bool
	}{
		"nothing":            {nil, false},
		"a header alone":     {packetTo(192, 0, 2, 1)[:ethernetHeader], false},
		"a cut packet":       {packetTo(192, 0, 2, 1)[:ethernetHeader+ipv4Header-1], false},
		"a packet":           {packetTo(192, 0, 2, 1), true},
		"ARP":                {question, true},
		"another version":    {version6, false},
		"a tagged frame":     {tagged, false},
		"name server":        {packetTo(10, 0, 2, 3), true},
		"gateway":            {packetTo(10, 0, 2, 2), false},
		"own broadcast":      {packetTo(10, 0, 2, 255), false},
		"a private network":  {packetTo(10, 0, 3, 2), false},
		"another":            {packetTo(172, 31, 255, 255), false},
		"and another":        {packetTo(192, 168, 1, 1), false},
		"behind private":     {packetTo(172, 32, 0, 0), true},
		"carrier":            {packetTo(100, 100, 100, 200), false},
		"behind carrier":     {packetTo(100, 128, 0, 0), true},
		"Azure":              {packetTo(168, 63, 129, 16), false},
		"beside Azure":       {packetTo(168, 63, 129, 17), true},
		"Oracle":             {packetTo(192, 0, 0, 192), false},
		"loopback":           {packetTo(127, 0, 0, 1), false},
		"the last loopback":  {packetTo(127, 255, 255, 255), false},
		"metadata":           {packetTo(169, 254, 169, 254), false},
		"before link-local":  {packetTo(169, 253, 255, 255), true},
		"behind link-local":  {packetTo(169, 255, 0, 0), true},
		"this host":          {packetTo(0, 0, 0, 0), false},
		"multicast":          {packetTo(224, 0, 0, 251), false},
		"broadcast":          {packetTo(255, 255, 255, 255), false},
		"reserved addresses": {packetTo(240, 0, 0, 1), false},
	} {
		if got := mayLeave(c.frame); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestNoProgram has lost the programs that were there when the prison was planned.
func TestNoProgram(t *testing.T) {
	if c, err := new(relay).connect(); c != nil || err == nil {
		t.Errorf("connected: %v, %v", c, err)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(packetTo(1, 2, 3, 4))
	f.Add(arp(2, ownMAC, gatewayAddress, ownMAC, ownAddress))
	f.Fuzz(func(t *testing.T, frame []byte) {
		isAnswer(frame)
		if mayLeave(frame) && len(frame) < ethernetHeader {
			t.Error("a frame without a header may leave")
		}
	})
}
