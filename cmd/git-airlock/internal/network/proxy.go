package network

import (
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/upstream"
)

// upstreamKey is [UpstreamKey] in the form in which git lists it. typedKey is not a setting of the user: an airlock keeps it with the proxy, and
// it is not empty if "git -c" gave the proxy with a password.
const (
	upstreamKey = "airlock.upstreamproxy"
	typedKey    = upstreamKey + ".password"
)

// DropPassword removes the password of a proxy from settings that an airlock will keep, because its record is a file.
func DropPassword(given gitops.Config) error {
	text, some := given[upstreamKey]
	if !some {
		return nil
	}
	given[typedKey] = "" // that of an earlier start
	p, password, err := upstream.Parse(text)
	switch {
	case text == "": // the airlock has no proxy any more
	case err != nil:
		return wrongProxy(text, err)
	case password != "":
		given[upstreamKey], given[typedKey] = p.String(), "typed"
	}
	return nil
}

// wrongProxy returns the error for a proxy that cannot be used. It does not show the URL, which may have a password.
func wrongProxy(text string, err error) error {
	scheme, _, some := strings.Cut(text, "://")
	if !some {
		scheme = "..."
	}
	return &gitops.SettingError{Key: UpstreamKey, Value: clip(scheme + "://..."), Want: "http, https or socks5h, with host and port: " + err.Error()}
}

// LostPassword reports that a start does not get the password of a proxy again.
type LostPassword struct{ Proxy string }

func (e *LostPassword) Error() string {
	return "no airlock keeps the password of a proxy, and no setting has the one of " + gitops.Text(e.Proxy).String() + " (typed with git -c)"
}

// Next returns the next commands.
func (e *LostPassword) Next() []string {
	return []string{startWithPassword(e.Proxy, ""), "git -c " + UpstreamKey + "= airlock start  # without the proxy"}
}

// startWithPassword returns the command that starts an airlock with the password of a proxy. user stands for a user that the proxy lacks.
func startWithPassword(proxy, user string) string {
	scheme, host, _ := strings.Cut(proxy, "://")
	named, at, some := strings.Cut(host, "@")
	if !some {
		named, at = user, host
	}
	return "git -c " + gitops.Pasteable(UpstreamKey+"="+scheme+"://"+named+":PASSWORD@"+at) + " airlock start"
}

// ProxyNext returns the commands after a failure of a proxy: those that give it another password, or else the one that tries the proxy from
// this machine and shows what it answers.
func ProxyNext(proxy string, f control.ProxyFailure) []string {
	p, _, err := upstream.Parse(proxy)
	switch {
	case err != nil:
		return nil
	case f.Login:
		return []string{"git airlock stop && " + startWithPassword(proxy, "USER"),
			"git config --show-origin --name-only --get-regexp '^" + upstreamKey + "$'  # names the file of the setting"}
	}
	command, scheme := "curl -sSpo /dev/null -x "+gitops.Pasteable(p.WithoutUser().String()), "https://"
	if p.User() != "" {
		command += " -U " + gitops.Pasteable(p.User())
	}
	if strings.HasSuffix(f.Target, ":80") {
		scheme = "http://"
	}
	return []string{command + " " + gitops.Pasteable(scheme+f.Target) + "  # tries the proxy from here"}
}
