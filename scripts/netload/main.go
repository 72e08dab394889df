// Command netload measures a network, for scripts/bench-net.
//
//	netload serve ADDRESS              serves until it is killed
//	netload send|receive ADDRESS MB    MB a second
//	netload trip ADDRESS N             milliseconds of a round trip, the smallest and the median of N
//	netload connect ADDRESS N          the same for a connection and a byte
//	netload hold ADDRESS N             connects N times, prints how often that worked, and waits for the end of its input
//	netload flood ADDRESS N            connects N times to what refuses, and prints the seconds
//	netload floor ADDRESS MB           as root: MB a second, out and in, of a loop that only copies frames
//	netload ask|greet URL N            the same for N requests, over one connection or each over a new one
//	netload events URL N               the same for the delay of N events, which are lines with the server's time
//	netload relay ADDRESS NAME,FILE    answers for a TLS server, with the certificate in FILE, until it is killed
//
// A client of "serve" sends one byte that says what it wants.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

// chunk is how much is written at a time.
const chunk = 256 << 10

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "netload:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 2 && args[0] == "serve" {
		return serve(args[1])
	}
	if len(args) != 3 {
		return errors.New("usage: netload serve ADDRESS, or send|receive|trip|connect|hold|flood|floor|relay|ask|greet|events ADDRESS N")
	}
	if args[0] == "relay" {
		return relay(args[1], args[2])
	}
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	switch args[0] {
	case "send", "receive":
		return transfer(args[1], args[0] == "send", int64(n)<<20)
	case "trip":
		return trips(args[1], n)
	case "connect":
		return connections(args[1], n)
	case "hold":
		return hold(args[1], n)
	case "flood":
		return flood(args[1], n)
	case "floor":
		return floor(args[1], int64(n)<<20)
	case "ask", "greet":
		return ask(args[1], n, args[0] == "greet")
	case "events":
		return events(args[1], n)
	}
	return fmt.Errorf("no measurement is called %q", args[0])
}

func serve(address string) error {
	var listen net.ListenConfig
	l, err := listen.Listen(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go answer(c)
	}
}

// answer does what the first byte of a connection wants: take bytes and confirm their end, give bytes for ever, or echo.
func answer(c net.Conn) {
	defer c.Close()
	want := make([]byte, 1)
	if _, err := io.ReadFull(c, want); err != nil {
		return
	}
	switch want[0] {
	case 's':
		buf := make([]byte, chunk)
		for err := error(nil); err == nil; {
			_, err = c.Read(buf)
		}
		_, _ = c.Write(want) // the client may be gone
	case 'r':
		buf := make([]byte, chunk)
		for err := error(nil); err == nil; {
			_, err = c.Write(buf)
		}
	default:
		_, _ = c.Write(want)
		_, _ = io.Copy(c, c)
	}
}

func connect(address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(context.Background(), "tcp", address)
}

func dial(address string, want byte) (*net.TCPConn, error) {
	c, err := connect(address)
	if err != nil {
		return nil, err
	}
	_, err = c.Write([]byte{want})
	return c.(*net.TCPConn), err
}

func transfer(address string, send bool, size int64) error {
	c, err := dial(address, map[bool]byte{true: 's', false: 'r'}[send])
	if err != nil {
		return err
	}
	defer c.Close()
	buf, begun := make([]byte, chunk), time.Now()
	for moved := int64(0); moved < size; {
		var n int
		if send {
			n, err = c.Write(buf)
		} else {
			n, err = c.Read(buf)
		}
		if err != nil {
			return err
		}
		moved += int64(n)
	}
	if send {
		if err := c.CloseWrite(); err != nil {
			return err
		}
		if _, err := io.ReadFull(c, buf[:1]); err != nil {
			return err
		}
	}
	fmt.Printf("%.0f\n", float64(size)/1e6/time.Since(begun).Seconds())
	return nil
}

// report prints the smallest and the median time in milliseconds.
func report(all []time.Duration) {
	slices.Sort(all)
	fmt.Printf("%.3f %.3f\n", all[0].Seconds()*1000, all[len(all)/2].Seconds()*1000)
}

func trips(address string, n int) error {
	c, err := dial(address, 'e')
	if err != nil {
		return err
	}
	defer c.Close()
	b, all := []byte{0}, make([]time.Duration, n)
	if _, err := io.ReadFull(c, b); err != nil {
		return err
	}
	for i := range all {
		begun := time.Now()
		if _, err := c.Write(b); err != nil {
			return err
		}
		if _, err := io.ReadFull(c, b); err != nil {
			return err
		}
		all[i] = time.Since(begun)
	}
	report(all)
	return nil
}

func connections(address string, n int) error {
	all := make([]time.Duration, n)
	for i := range all {
		begun := time.Now()
		c, err := dial(address, 'e')
		if err != nil {
			return err
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			return err
		}
		all[i] = time.Since(begun)
		c.Close()
	}
	report(all)
	return nil
}

func hold(address string, n int) error {
	made := 0
	for range n {
		c, err := dial(address, 'e')
		if err != nil {
			continue
		}
		defer c.Close()
		if _, err := io.ReadFull(c, make([]byte, 1)); err == nil {
			made++
		}
	}
	fmt.Println(made)
	_, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func flood(address string, n int) error {
	const together = 8
	begun := time.Now()
	var all sync.WaitGroup
	for range together {
		all.Go(func() {
			for range n / together {
				if c, err := connect(address); err == nil {
					c.Close()
				}
			}
		})
	}
	all.Wait()
	fmt.Printf("%.1f\n", time.Since(begun).Seconds())
	return nil
}
