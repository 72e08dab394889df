// Package confighook has the settings that keep git from running hooks which the configuration defines. Git has such hooks since 2.54
// (hook.<name>.event in git-config(1)), and core.hooksPath does not concern them.
package confighook

import (
	"strings"
	"sync"
)

// Off switches off all hooks of each event that one of our commands can cause. Git obeys these settings since 2.55.
var Off = settings("applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "prepare-commit-msg", "commit-msg", "post-commit",
	"pre-merge-commit", "post-merge", "pre-rebase", "post-rewrite", "post-checkout", "pre-push", "pre-auto-gc", "post-index-change", "reference-transaction")

func settings(events ...string) (all []string) {
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

// ByName reports whether a version of git has hooks in the configuration, but switches them off only one by one.
func ByName(version string) bool { return strings.HasPrefix(version, "2.54.") }

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
