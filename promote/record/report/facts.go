package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/words"
)

// facts returns where and how the command ran, and where the record is.
func (m *material) facts() (facts []Fact) {
	add := func(name, format string, values ...any) {
		facts = append(facts, Fact{name, Text(fmt.Sprintf(format, values...))})
	}
	add("Airlock", "%s", m.airlock())
	if m.Run > 1 {
		add("Run before it", "git airlock report %s/%d", m.Session, m.Run-1)
	}
	if m.Base != "" {
		add("Workspace", "made from your commit %s, without changes that were not committed", short(m.Base))
	}
	add("Branch", "%s: at %s before, %s after", m.branch().Raw(), orNone(short(m.Outer.Before)), orNone(short(m.Outer.After)))
	add("Prison", "%s", m.prison())
	if len(m.Weaker) > 0 {
		add("Weaker than asked", "%s", strings.Join(m.Weaker, "; "))
	}
	if len(m.Policy) > 0 {
		add("Rules of the gate", "%s (git airlock help policy)", m.rules())
	}
	add("Variables passed", "%s", orNone(strings.Join(m.Environment, ", ")))
	if len(m.samples) > 0 {
		add("Used", "%s", m.used())
	}
	add("Program", "git-airlock %s", m.Program)
	add("Record", "%s", cmp.Or(m.ref, record.Ref(m.Session, m.Run)))
	if m.commit != "" {
		add("Record's commit", "%s", m.commit)
	}
	add("To check it", "git airlock inspect %d --verify compares the files of the record with their hashes", m.Run)
	return facts
}

// airlock returns the id of the airlock, and the time of its start, which is part of the session's name.
func (m *material) airlock() string {
	stamp, _, _ := strings.Cut(m.Session, "-")
	started, err := time.Parse("20060102T150405Z", stamp)
	if err != nil {
		return m.ID
	}
	return m.ID + ", started " + started.Format("2 January 2006, 15:04:05 UTC")
}

// backends explains the names of the backends to readers who do not know them.
var backends = map[string]string{
	"native": "native (no container: the command is shut in by the kernel)",
	"docker": "docker (a container)", "podman": "podman (a container)",
}

func (m *material) prison() string {
	parts := []string{cmp.Or(backends[m.Backend], m.Backend)}
	if m.Isolation.Runtime != "" {
		parts = append(parts, "runtime "+m.Isolation.Runtime)
	}
	parts = append(parts, "network "+orNone(m.Network))
	if m.Isolation.Memory > 0 {
		parts = append(parts, memory(m.Isolation.Memory)+" of memory")
	}
	if m.Isolation.CPUs > 0 {
		parts = append(parts, fmt.Sprintf("%g cores", m.Isolation.CPUs))
	}
	if m.Isolation.PIDs > 0 {
		parts = append(parts, fmt.Sprintf("%d processes", m.Isolation.PIDs))
	}
	return strings.Join(parts, ", ")
}

// rules describes the policies whose rules the gate applied.
func (m *material) rules() string {
	var whose []string
	for _, id := range m.Policy {
		kind, at, _ := strings.Cut(id, ":")
		switch kind {
		case "builtin":
			id = "those of git-airlock"
		case "user":
			id = "those of your policy file"
		case "team":
			id = "those of the team's policy " + short(gitops.OID(at))
		}
		whose = append(whose, id)
	}
	return list(whose)
}

// used returns what the prison used. Most writes stay in memory for a while, so that no bytes on a disk do not mean that nothing
// was written.
func (m *material) used() string {
	last := m.samples[len(m.samples)-1]
	text := "an unknown processor time"
	if last.CPU >= 0 {
		text = took(time.Duration(last.CPU)*time.Millisecond) + " of processor time"
	}
	if highest := m.highestMemory(); highest >= 0 {
		text += fmt.Sprintf(", at most %s of memory", memory(highest))
	}
	if last.Written > 0 {
		text += fmt.Sprintf(", and %s reached a disk before the end", words.Bytes(last.Written))
	}
	return text
}

// highestMemory returns the highest measured memory in bytes, or -1 if memory was not measured.
func (m *material) highestMemory() int64 {
	highest := int64(-1)
	for _, s := range m.samples {
		highest = max(highest, s.Memory)
	}
	return highest
}

func short(id gitops.OID) string { return string(id[:min(12, len(id))]) }

func orNone(text string) string { return cmp.Or(text, "none") }
