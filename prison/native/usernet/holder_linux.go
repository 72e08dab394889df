package usernet

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/gitops/ticks"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/credential/secret"
	"github.com/git-airlock/git-airlock/prison/egress/ledger"
	"github.com/git-airlock/git-airlock/prison/native/wire"

	"golang.org/x/sys/unix"
)

const (
	// rulesPoll is the interval for checking whether the rules have changed.
	rulesPoll = 150 * time.Millisecond
	// reserved is the number of later records for which the ledger keeps room. A network may have to write that many.
	reserved = 1024
	// readPause is how long no value is read again after a value of a credential was read again.
	readPause = 5 * time.Second
	// lastPatience is how long a process that must end may take for its last records.
	lastPatience = 2 * time.Second
)

// holder does the work that the process with the packets must not do: it reads the rules from a file, and writes the ledger and the
// state. See package control.
type holder struct {
	dir, session string // the prison's folder and ID

	mu     sync.Mutex
	killed bool      // the ledger does not say yet that an earlier holder was killed
	link   wire.Conn // to the process that carries packets now
	linked bool      // link is open
	last   chan bool // gets one value when the process has ended, or true if it has handed over its last records
	rules  control.Rules
	seen   fileID         // the version of the rules file that was read last
	heard  fileID         // the version of the file with the last question
	asked  uint64         // that question
	fault  string         // the error of reading that file, or empty
	ledger *ledger.Writer // nil if it is not open
	state  control.State
	// authorities are the certificate authorities of the process, kept in memory for its successor.
	authorities *control.Authorities
	// secrets are the values of credentials, kept in memory only. If an earlier holder was killed, the values must be read again.
	secrets []secret.Secret
	reading sync.Mutex // held while a value is read again, and for readPause afterwards
}

// newHolder returns the holder of a network. It goes on counting the uses of credentials where an earlier network ended.
func newHolder(dir, session string, secrets []secret.Secret) *holder {
	h := &holder{dir: dir, session: session, secrets: secrets, state: control.State{Asked: 1, Credentials: control.EarlierUses(dir)}}
	h.killed = control.EndState(dir) == nil // an earlier holder that was not killed has done this
	h.markKnown()
	return h
}

// fileID identifies a version of a file. It changes when the file is replaced.
type fileID struct {
	inode, size, changed int64 // changed is the time of the last change in nanoseconds
}

// identify returns the fileID of a file, or zero if the file does not exist.
func identify(path string) fileID {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return fileID{}
	}
	return fileID{int64(st.Ino), st.Size, st.Mtim.Nano()} // on some systems the fields have other types
}

// first returns what a process gets before it carries packets.
func (h *holder) first() control.Order {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.read()
	var lost []control.Record
	if h.killed {
		lost = append(lost, lostBefore("an earlier network was killed"))
	}
	rules, written := h.rules, h.write(lost)
	h.killed = h.killed && written.Records == 0
	written.Records = 0 // those of the process that begins, which has sent none yet
	return control.Order{Rules: &rules, Written: &written, Asked: h.asked, Authorities: h.authorities, Uses: h.state.Credentials, Values: h.values()}
}

// values returns the known values of the credentials, by name.
func (h *holder) values() map[string]string {
	all := map[string]string{}
	for _, s := range h.secrets {
		if s.Value != "" {
			all[s.Name] = s.Value
		}
	}
	return all
}

// markKnown writes into the state which credentials have a value.
func (h *holder) markKnown() {
	values := h.values()
	for i, u := range h.state.Credentials {
		_, h.state.Credentials[i].Known = values[u.Name]
	}
}

// supply stores values of credentials, sends them to the process, and writes into the state which credentials have one.
func (h *holder) supply(given []secret.Secret) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, g := range given {
		h.secrets = append(slices.DeleteFunc(h.secrets, func(s secret.Secret) bool { return s.Name == g.Name }), g)
	}
	h.sendValues()
}

// sendValues sends all values to the process, and writes into the state which credentials have one. A process that starts later gets the values
// from [holder.first].
func (h *holder) sendValues() {
	h.markKnown()
	h.save()
	if h.linked {
		h.link.Send(control.Order{Values: h.values()})
	}
}

// recover reads the values that a killed holder had, and records that it was killed and which values are missing.
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

// renew reads the value of a credential from its source, and sends it to the process if it has changed.
func (h *holder) renew(old secret.Secret) {
	value, err := old.Source.Read(context.Background())
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.secrets, func(s secret.Secret) bool { return s.Name == old.Name })
	if err != nil || i < 0 || h.secrets[i].Value == value {
		return
	}
	h.secrets[i].Value = value
	h.sendValues()
}

// readAgain renews a credential whose value a server has refused. It reads only one value at a time, so that the agent cannot start many
// of the user's programs.
func (h *holder) readAgain(name string) {
	h.mu.Lock()
	i := slices.IndexFunc(h.secrets, func(s secret.Secret) bool { return s.Name == name && !s.Source.Fixed() })
	if i < 0 || !h.reading.TryLock() {
		h.mu.Unlock()
		return
	}
	old := h.secrets[i]
	h.mu.Unlock()
	defer h.reading.Unlock()
	h.renew(old)
	time.Sleep(readPause)
}

// read reads the rules. If that fails, the previous rules stay valid; before the first success, nothing is allowed.
func (h *holder) read() {
	h.seen = identify(filepath.Join(h.dir, control.RulesFile))
	rules, err := control.ReadRules(h.dir)
	if err != nil {
		h.fault = err.Error()
		return
	}
	h.rules, h.fault = rules, ""
}

// serve handles the reports of a process until the process ends.
func (h *holder) serve(c carrier) {
	last := make(chan bool, 1)
	defer offer(last, false)
	h.mu.Lock()
	h.link, h.linked, h.last = c.link, true, last
	h.state = control.State{PID: c.process.Pid, Since: time.Now().UTC(), Starts: h.state.Starts + 1, Asked: h.state.Asked, Generation: h.rules.Generation, Authorities: h.state.Authorities, Credentials: h.state.Credentials}
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
		if r.Last {
			offer(last, true)
		}
	}
}

// offer sends a value over a channel that has room for one, unless an earlier value is there.
func offer(to chan<- bool, value bool) {
	select {
	case to <- value:
	default:
	}
}

// finish makes the process end its connections, and waits until the ledger has its last records. The ledger has an alarm if some may be
// missing.
func (h *holder) finish() {
	h.mu.Lock()
	linked, last := h.linked, h.last
	if linked {
		h.link.Send(control.Order{End: true}) // serve notices if the process has ended
	}
	h.mu.Unlock()
	if !linked {
		return
	}
	select {
	case whole := <-last:
		if whole {
			return
		}
	case <-time.After(lastPatience):
	}
	h.alarm("the process of the network has ended early")
}

// handle handles one report.
func (h *holder) handle(link wire.Conn, r control.Report) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.State != nil {
		s := *r.State
		s.Asked = max(s.Asked, h.state.Asked)
		s.PID, s.Since, s.Starts, s.Ledger = h.state.PID, h.state.Since, h.state.Starts, h.state.Ledger
		h.state = s
		h.markKnown() // a report can be older than the values that were sent since
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
		link.Send(control.Order{Written: &written}) // replace notices if the process has ended
	}
}

// write appends records to the ledger, and keeps room for later records.
func (h *holder) write(records []control.Record) (w control.Written) {
	var err error
	if h.ledger == nil {
		h.ledger, err = ledger.Open(h.dir, h.session)
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

func (h *holder) closeLedger() {
	if h.ledger != nil {
		h.ledger.Close() // records that were appended can be read in any case
		h.ledger = nil
	}
}

// save writes the state. If that fails, status shows an earlier state.
func (h *holder) save() {
	s := h.state
	if h.fault != "" {
		s.Error = h.fault
	}
	control.WriteState(h.dir, s) //nolint:errcheck
}

// lostBefore returns the alarm about an event that may have lost records.
func lostBefore(event string) control.Record {
	return control.Record{
		Kind: control.KindAlarm, Verdict: control.VerdictLost, Time: time.Now().UTC(), Reason: event + "; its last connections may have no record",
	}
}

// alarm records an event that the user should see: the process has ended, and its last records may be lost.
func (h *holder) alarm(reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.linked = false
	h.write([]control.Record{lostBefore(reason)})
}

// watch sends changed rules and new questions to the process, until done is closed.
func (h *holder) watch(done <-chan struct{}) {
	for range ticks.Each(done, rulesPoll) {
		h.refresh()
	}
}

// refresh sends the rules to the process if they have changed, and a new question.
func (h *holder) refresh() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sendQuestion()
	if identify(filepath.Join(h.dir, control.RulesFile)) == h.seen {
		return
	}
	h.read()
	if h.fault == "" && h.linked {
		rules := h.rules
		h.link.Send(control.Order{Rules: &rules}) // a successor gets the rules from [holder.first]
	}
	h.save()
}

// sendQuestion sends a new question to the process. A successor gets the question from [holder.first].
func (h *holder) sendQuestion() {
	at := identify(filepath.Join(h.dir, control.AskedFile))
	if at == h.heard {
		return
	}
	h.heard, h.asked = at, control.ReadAsked(h.dir)
	if h.linked {
		h.link.Send(control.Order{Asked: h.asked})
	}
}

// end closes the ledger and ends the state, so that no network counts as running.
func (h *holder) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.linked = false
	h.closeLedger()
	for i := range h.state.Credentials {
		u := &h.state.Credentials[i]
		u.Silent, u.Since = u.Silence(time.Now()), time.Time{}
	}
	h.save()
	control.EndState(h.dir) //nolint:errcheck // without a process there is no state
}
