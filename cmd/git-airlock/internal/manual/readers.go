package manual

import (
	"slices"
	"strings"
)

// readers maps each setting to the commands on whose pages it is explained: those that read it, or that show what it does.
var readers = map[string]string{
	"airlock.backend":             "start run init",
	"airlock.image":               "start run init",
	"airlock.runtime":             "start run",
	"airlock.network":             "start run init net",
	"airlock.agent.<name>.*":      "start run agents",
	"airlock.agent.default":       "run agents",
	"airlock.allow":               "start run net",
	"airlock.deny":                "start run net",
	"airlock.networkLearn":        "start run net",
	"airlock.upstreamProxy":       "start run net",
	"airlock.credential.<name>.*": "start run net",
	"airlock.env":                 "start run",
	"airlock.tool":                "start run",
	"airlock.rootfs":              "start run",
	"airlock.recipe":              "start run",
	"airlock.consent":             "start run image",
	"airlock.buildNetwork":        "start run image",
	"airlock.selftest":            "start run",
	"airlock.memory":              "start run init",
	"airlock.cpus":                "start run init",
	"airlock.pids":                "start run init",
	"airlock.landingNetwork":      "promote",
	"airlock.keepEnv":             "promote",
	"airlock.review":              "start run promote review approve hooks",
	"airlock.check":               "check review approve",
	"airlock.check.gate":          "check review approve",
	"airlock.check.time":          "check",
	"airlock.autoLand":            "start run",
	"airlock.engine":              "start run promote",
	"airlock.sign":                "promote approve",
	"airlock.workspace":           "start run",
	"airlock.maxWorkspace":        "start run",
	"airlock.checkpoint":          "start run checkpoint",
	"airlock.checkpoint.max":      "checkpoint",
	"airlock.runs.keep":           "runs",
	"airlock.runs.maxBytes":       "runs",
	"airlock.exec.record":         "start run execs",
	"airlock.exec.deny":           "start run execs",
	"airlock.maxFileSize":         "policy",
	"airlock.policy.<rule>":       "policy",
	"airlock.policyFile":          "policy",
	"airlock.exclude":             "start run init sync scan",
	"airlock.allowSecrets":        "start run sync",
	"airlock.scan.allow":          "start run scan",
	"airlock.scan.pattern":        "start run scan",
	"airlock.scan.file":           "start run scan",
	"airlock.limit.*":             "promote",
	"airlock.name":                "promote approve",
	"airlock.email":               "promote approve",
}

// settings returns the settings that are explained on the page of a command.
func (p Page) settings() []Setting {
	return slices.DeleteFunc(slices.Clone(Settings), func(s Setting) bool {
		return !slices.Contains(strings.Fields(readers[s.Key]), p.CommandName())
	})
}
