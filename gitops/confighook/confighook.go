// Package confighook has the settings that keep git from running hooks which the configuration defines. Git has such hooks since 2.54
// (hook.<name>.event in git-config(1)), and core.hooksPath does not concern them.
package confighook

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// events are those that one of our commands can cause.
var events = []string{"applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "prepare-commit-msg", "commit-msg", "post-commit",
	"pre-merge-commit", "post-merge", "pre-rebase", "post-rewrite", "post-checkout", "pre-push", "pre-auto-gc", "post-index-change", "reference-transaction"}

// Off switches off all hooks of each of these events. Git obeys these settings since 2.55, see [ByName].
var Off = settings()

func settings() (all []string) {
	for _, event := range events {
		all = append(all, "hook."+event+".enabled=false")
	}
	return all
}

// OffParameters returns [Off] as a value of GIT_CONFIG_PARAMETERS.
func OffParameters() string {
	var all []string
	for _, setting := range Off {
		key, value, _ := strings.Cut(setting, "=")
		all = append(all, quote(key)+"="+quote(value))
	}
	return strings.Join(all, " ")
}

// Hooks are those of one configuration.
type Hooks struct {
	read   sync.Once
	byName bool
}

// ByName is like the function of this name. It reads the configuration only once.
func (h *Hooks) ByName(version func() string, list func() []string) bool {
	h.read.Do(func() { h.byName = ByName(version(), list) })
	return h.byName
}

// ByName reports whether a version of git switches the hooks of a configuration off only one by one. That is 2.54, and each later version if
// the configuration has a hook with the name of an event: the setting then concerns this hook instead of the event (hook.c). list returns the
// configuration as "git config --list -z" prints it.
func ByName(version string, list func() []string) bool {
	var major, minor int
	_, err := fmt.Sscanf(version, "%d.%d", &major, &minor)
	switch {
	case err != nil, major < 2, major == 2 && minor < 54:
		return false
	case major == 2 && minor == 54:
		return true
	}
	return slices.ContainsFunc(list(), func(record string) bool {
		key, _, _ := strings.Cut(record, "\n")
		name, hook := strings.CutPrefix(key, "hook.")
		dot := strings.LastIndexByte(name, '.')
		return hook && dot > 0 && slices.Contains(events, name[:dot]) && slices.Contains([]string{"command", "parallel"}, name[dot+1:])
	})
}

// Parameters returns a value of GIT_CONFIG_PARAMETERS that switches off each hook by its name. before is the value so far. records is the
// configuration as "git config --list -z" prints it. The form of the value is that of git's quote.c, which a name with "=" needs.
func Parameters(before string, records []string) string {
	all := []string{before}
	seen := map[string]bool{}
	for _, r := range records {
		key, _, _ := strings.Cut(r, "\n")
		if name, hook := strings.CutPrefix(key, "hook."); hook && strings.HasSuffix(name, ".event") && !seen[name] {
			seen[name] = true
			all = append(all, quote("hook."+strings.TrimSuffix(name, ".event")+".enabled")+"='false'")
		}
	}
	return strings.TrimSpace(strings.Join(all, " "))
}

func quote(word string) string { return "'" + quoter().Replace(word) + "'" }

// quoter has a table of 12 KB, which is made once: each start of the program quotes.
var quoter = sync.OnceValue(func() *strings.Replacer { return strings.NewReplacer("'", `'\''`, "!", `'\!'`) })
