package usernet

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/credential/secret"
	"github.com/git-airlock/git-airlock/prison/egress/ledger"
	"github.com/git-airlock/git-airlock/prison/native/wire"

	"golang.org/x/sys/unix"
)

const (
	// rulesPoll is the interval for checking whether the rules have changed.
	rulesPoll = 150 * time.Millisecond
	// reserved is the number of records for which the ledger always has room. A network may have to write that many.
	reserved = 1024
	// readPause is the pause after the value of a credential was read again.
	readPause = 5 * time.Second
)

// holder does the work that the process with the packets must not do: it reads the rules from a file, and writes the
// ledger and the state. See package control.
type holder struct {
	dir, session string

	mu     sync.Mutex
	link   wire.Conn // to the current process
	linked bool
	rules  control.Rules
	seen   fileID // identifies the file with the rules
	fault  string // the error of reading that file
	ledger control.Ledger
	state  control.State
	// authorities are for a successor of the process, in memory only.
	authorities *control.Authorities
	// secrets are the values of credentials, in memory only. Those of a killed holder have to be read first.
	secrets []secret.Secret
	reading bool // one is being read again
}

// newHolder returns the holder of a network that counts on from the uses of an earlier one.
func newHolder(dir, session string, secrets []secret.Secret) *holder {
	h := &holder{dir: dir, session: session, secrets: secrets, state: control.State{Credentials: control.EarlierUses(dir)}}
	control.EndState(dir) //nolint:errcheck // a holder that was not killed has done so
	h.know()
	return h
}

// fileID changes when a file is replaced.
type fileID struct {
	inode, size, changed int64
}

// identify returns the fileID of a file, or zero if the file does not exist.
func identify(path string) fileID {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return fileID{}
	}
	return fileID{int64(st.Ino), st.Size, st.Mtim.Nano()} // some systems have other types
}

// first returns the orders for a process before it carries packets.
func (h *holder) first() control.Order {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.read()
	rules, written := h.rules, h.write(nil)
	return control.Order{Rules: &rules, Written: &written, Authorities: h.authorities, Uses: h.state.Credentials, Values: h.values()}
}

// values returns the values of the credentials by their names.
func (h *holder) values() map[string]string {
	all := map[string]string{}
	for _, s := range h.secrets {
		if s.Value != "" {
			all[s.Name] = s.Value
		}
	}
	return all
}

// know writes into the state which credentials have a value, before the process reports it.
func (h *holder) know() {
	values := h.values()
	for i, u := range h.state.Credentials {
		_, h.state.Credentials[i].Known = values[u.Name]
	}
}

// supply takes values of credentials, and hands them to the process.
func (h *holder) supply(given []secret.Secret) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, g := range given {
		h.secrets = append(slices.DeleteFunc(h.secrets, func(s secret.Secret) bool { return s.Name == g.Name }), g)
	}
	h.know()
	h.save()
	h.hand()
}

// hand sends the values to the process. A process that starts later gets them first.
func (h *holder) hand() {
	if h.linked {
		h.link.Send(control.Order{Values: h.values()})
	}
}

// recover reads the values that a killed holder had, and records that it was killed and which values are lost.
func (h *holder) recover() {
	h.mu.Lock()
	secrets := slices.Clone(h.secrets)
	h.mu.Unlock()
	for _, s := range secrets {
		if s.Value == "" {
			h.renew(s)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	reason, values := "its holder was killed, and another one goes on", h.values()
	if len(h.rules.Credentials) > 0 {
		reason += "; programs inside that trust its certificates must be started again"
	}
	for _, c := range h.rules.Credentials {
		if values[c.Name] == "" && c.Placeholder != "" {
			reason += "; the credential " + c.Name + " (" + c.Source + ") has no value before the next git airlock start"
		}
	}
	h.write([]control.Record{{Kind: control.KindAlarm, Time: time.Now().UTC(), Reason: reason}})
}

// renew reads the value of a credential from its source, and hands it to the process if it is another one.
func (h *holder) renew(old secret.Secret) {
	value, err := old.Source.Read(context.Background())
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.secrets, func(s secret.Secret) bool { return s.Name == old.Name })
	if err != nil || i < 0 || h.secrets[i].Value == value {
		return
	}
	h.secrets[i].Value = value
	h.hand()
}

// readAgain reads the value of a credential that a server has refused, and hands it to the process if it is another one. Meanwhile
// no other is read, so that the agent cannot start many programs of the user.
func (h *holder) readAgain(name string) {
	var old secret.Secret
	h.mu.Lock()
	i := slices.IndexFunc(h.secrets, func(s secret.Secret) bool { return s.Name == name && !s.Source.Fixed() })
	busy := h.reading || i < 0
	if !busy {
		h.reading, old = true, h.secrets[i]
	}
	h.mu.Unlock()
	if busy {
		return
	}
	h.renew(old)
	time.Sleep(readPause)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reading = false
}

// read reads the rules. If the file cannot be read, the previous rules stay. At first, nothing is allowed.
func (h *holder) read() {
	h.seen = identify(filepath.Join(h.dir, control.RulesFile))
	rules, err := control.ReadRules(h.dir)
	if err != nil {
		h.fault = err.Error()
		return
	}
	h.rules, h.fault = rules, ""
}

// serve writes the reports of a process, until the process ends.
func (h *holder) serve(c carrier) {
	h.mu.Lock()
	h.link, h.linked = c.link, true
	h.state = control.State{PID: c.process.Pid, Since: time.Now().UTC(), Starts: h.state.Starts + 1, Generation: h.rules.Generation, Authorities: h.state.Authorities, Credentials: h.state.Credentials}
	h.save()
	h.mu.Unlock()
	for {
		var r control.Report
		files, err := c.link.Recv(&r)
		if err != nil {
			return
		}
		wire.CloseAll(files)
		h.handle(c.link, r)
	}
}

// handle handles one report.
func (h *holder) handle(link wire.Conn, r control.Report) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.State != nil {
		s := *r.State
		s.PID, s.Since, s.Starts, s.Ledger = h.state.PID, h.state.Since, h.state.Starts, h.state.Ledger
		h.state = s
		h.save()
	}
	if r.Answer {
		link.Send(control.Order{Stated: true})
	}
	if r.Authorities != nil {
		h.authorities = r.Authorities
	}
	if r.Stale != "" {
		go h.readAgain(r.Stale)
	}
	if r.Write {
		written := h.write(r.Records)
		link.Send(control.Order{Written: &written}) // its end is seen elsewhere
	}
}

// write appends records to the ledger, and keeps room for the following ones.
func (h *holder) write(records []control.Record) (w control.Written) {
	var err error
	if h.ledger == nil {
		h.ledger, err = openLedger(h.dir, h.session)
	}
	if err == nil {
		err = h.ledger.Append(records...)
	}
	if err == nil {
		w.Records = len(records)
		err = h.ledger.Reserve(reserved)
	}
	if err != nil {
		w.Error = err.Error()
		h.closeLedger() // opening it again may repair it
	}
	if h.state.Ledger != w.Error {
		h.state.Ledger = w.Error
		h.save()
	}
	return w
}

// openLedger opens the ledger. On an error, the interface is nil.
func openLedger(dir, session string) (control.Ledger, error) {
	w, err := ledger.Open(dir, session)
	if err != nil {
		return nil, err
	}
	return w, nil
}

func (h *holder) closeLedger() {
	if h.ledger != nil {
		h.ledger.Close() // what was appended can be read
		h.ledger = nil
	}
}

// save writes the state. If that fails, status shows a previous state.
func (h *holder) save() {
	s := h.state
	if h.fault != "" {
		s.Error = h.fault
	}
	control.WriteState(h.dir, s) //nolint:errcheck
}

// alarm records an event that the user should see.
func (h *holder) alarm(reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.linked = false
	h.write([]control.Record{{Kind: control.KindAlarm, Time: time.Now().UTC(), Reason: reason}})
}

// watch sends changed rules to the process, until done is closed.
func (h *holder) watch(done <-chan struct{}) {
	poll := time.NewTicker(rulesPoll)
	defer poll.Stop()
	for {
		select {
		case <-done:
			return
		case <-poll.C:
			h.refresh()
		}
	}
}

// refresh sends the rules to the process if they have changed.
func (h *holder) refresh() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if identify(filepath.Join(h.dir, control.RulesFile)) == h.seen {
		return
	}
	h.read()
	if h.fault == "" && h.linked {
		rules := h.rules
		h.link.Send(control.Order{Rules: &rules}) // its successor gets them first
	}
	h.save()
}

// end closes the ledger and ends the state, so that no network counts as running.
func (h *holder) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.linked = false
	h.closeLedger()
	control.EndState(h.dir) //nolint:errcheck // there is none if no process has run
}
