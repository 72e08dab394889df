package launched

import "syscall"

// EndingKeys are the keys at a terminal that end a command.
var EndingKeys = [...]struct {
	Code   byte // as a raw terminal passes the key on
	Name   string
	Status int // of a command that the key's signal has ended
}{
	{Code: 0x03, Name: "^C", Status: 128 + int(syscall.SIGINT)},
	{Code: 0x1c, Name: `^\`, Status: 128 + int(syscall.SIGQUIT)},
}
