package policy

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/git-airlock/git-airlock/gitops"
)

// oddPath looks for names that a terminal, another tool or another file system would take for something else.
type oddPath struct{ changesOnly }

func (oddPath) describe() Description {
	return documented("odd-path", Hold, "a name with control or invisible characters, a backslash, or what Windows reserves or takes for another name; what it refuses is flagged")
}

func (oddPath) change(_ context.Context, _ *inspection, c gitops.Change, r *report) error {
	if c.New.Mode == 0 || c.Old.Mode != 0 {
		return nil // a name that was there is the user's
	}
	components(c.Path, func(_, name string) bool {
		if why := odd(name); why != "" {
			r.at(c.Path, "%s", why)
			return false
		}
		if why := nowhereElse(name); why != "" {
			r.mention(c.Path, "%s", why)
		}
		return true
	})
	return nil
}

// nowhereElse says why a name cannot be used on some system: nothing else is taken for it there, so that nobody is
// misled.
func nowhereElse(name string) string {
	switch {
	case !utf8.ValidString(name):
		return "a name that is not UTF-8, which macOS refuses"
	case strings.ContainsAny(name, `<>"|?*`):
		return "a character that Windows refuses"
	}
	return ""
}

// odd says what is odd about a name; empty for nothing.
func odd(name string) string {
	device, short := windowsNames()
	switch {
	case strings.IndexFunc(name, gitops.Hidden) >= 0:
		return "a name with a control or invisible character"
	case strings.Contains(name, `\`):
		return "a backslash, which is a slash on Windows"
	case strings.Contains(name, ":"):
		return "a colon, which is part of a drive or a hidden stream on Windows"
	case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
		return "a dot or space at the end, which Windows leaves out"
	case device.MatchString(name):
		return "the name of a device on Windows"
	case short.MatchString(name):
		return "a name that Windows gives to another file"
	}
	return ""
}

// windowsNames matches the names of devices that Windows reserves in every folder, with any extension, and those
// that it makes for files with long ones, as in "GIT~1".
var windowsNames = sync.OnceValues(func() (device, short *regexp.Regexp) {
	return regexp.MustCompile(`(?i)^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[1-9¹²³]) *(?:\.|$)`),
		regexp.MustCompile(`^[^~.]{1,6}~[1-9][0-9]{0,4}(?:\.[^.]{0,3})?$`)
})
