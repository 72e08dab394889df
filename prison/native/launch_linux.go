package native

import (
	"errors"
	"os"
	"time"
)

// launchedState is what the keeper writes to [commandName].
type launchedState struct {
	Argv   []string `json:"argv"`
	Exited bool     `json:"exited"`
	Status int      `json:"status"`
}

// launch starts a process that nobody waits for. Its terminal stays here and is read all the time,
// so that it never blocks; what it shows goes to the keeper.
func (s *server) launch(c conn, r request) {
	p, code, err := s.beginLaunch(r)
	if err != nil {
		c.send(reply{Error: err.Error(), Code: code})
		return
	}
	s.tell(announcement{State: &launchedState{Argv: r.Argv}})
	select {
	case <-s.noted: // from here on Launched tells of it
	case <-time.After(killPatience):
	}
	c.send(reply{})
	c.Close()

	master := p.ends[0]
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		s.drain(master)
	}()
	status := <-p.exited
	s.tell(announcement{State: &launchedState{Argv: r.Argv, Exited: true, Status: status}})
	s.launchMu.Lock()
	s.launched = false
	s.launchMu.Unlock()
	<-drained // others may still show something on the terminal
	master.Close()
}

func (s *server) beginLaunch(r request) (p started, code string, err error) {
	s.launchMu.Lock()
	defer s.launchMu.Unlock()
	switch {
	case !s.Listens:
		return p, "", errors.New("a prison that ends with its caller launches nothing")
	case s.launched:
		return p, "", errors.New("a launched command runs already")
	}
	p, code, err = s.start(r)
	s.launched = err == nil
	return p, code, err
}

// drain reads until the last process has closed the terminal; Linux says EIO then.
func (s *server) drain(master *os.File) {
	buf := make([]byte, 32<<10)
	for {
		n, err := master.Read(buf)
		if n > 0 {
			s.tell(announcement{Output: buf[:n]})
		}
		if err != nil {
			return
		}
	}
}
