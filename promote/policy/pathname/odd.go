package pathname

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
)

// Device reports whether Windows reserves a name for a device. It does so in every folder, with any extension.
func Device(name string) bool {
	device, _ := windowsNames()
	return device.MatchString(name)
}

// ShortName reports whether Windows may give a name to a file with a long name, as in "GIT~1".
func ShortName(name string) bool {
	_, short := windowsNames()
	return short.MatchString(name)
}

var windowsNames = sync.OnceValues(func() (device, short *regexp.Regexp) {
	return regexp.MustCompile(`(?i)^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[1-9¹²³]) *(?:\.|$)`),
		regexp.MustCompile(`^[^~.]{1,6}~[1-9][0-9]{0,4}(?:\.[^.]{0,3})?$`)
})

// SpaceAtEdge reports whether a name, or a part of it between dots, begins or ends with a space other than the one of ASCII. Nobody sees such a
// space there. Between letters, it is ordinary: macOS writes one into the names of screenshots.
func SpaceAtEdge(name string) bool {
	for part := range strings.SplitSeq(name, ".") {
		if trimmed := strings.TrimFunc(part, unicode.IsSpace); strings.ContainsFunc(strings.Replace(part, trimmed, "", 1), wideSpace) {
			return true
		}
	}
	return false
}

func wideSpace(r rune) bool { return r != ' ' && unicode.Is(unicode.Zs, r) }
