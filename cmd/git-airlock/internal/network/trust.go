package network

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/egress/control"
)

// TrustFolder is the folder in the agent's home with the certificates of the servers that the network answers for, and of [Added]. The file
// own.pem has these alone, and bundle.pem has those of the system as well. wgetrc and apt.conf name bundle.pem for programs that read it from
// a file with settings.
const TrustFolder = ".local/share/certificates"

// TrustScript is for a shell inside, and writes the certificates from its standard input. A program that reads a file meanwhile sees the
// old one or the new one.
const TrustScript = `
set -e
umask 022
cd
test -d ` + TrustFolder + ` || mkdir -p ` + TrustFolder + `
cd ` + TrustFolder + `
{ echo; cat; } >own.new # the certificates before it may end without a line feed
base=/dev/null
for f in /etc/ssl/cert.pem /etc/ssl/ca-bundle.pem /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/certs/ca-certificates.crt; do
	if test -r $f; then base=$f; fi
done
cat $base own.new >bundle.new
{ ! test -r ~/.wgetrc || cat ~/.wgetrc || :; echo "ca_certificate = $PWD/bundle.pem"; } >wgetrc
echo "Acquire::https::CAInfo \"$PWD/bundle.pem\";" >apt.conf
mv -f own.new own.pem
mv -f bundle.new bundle.pem
`

// fileVariables are read by programs that take a file with all certificates, or add those of a file to the ones that they bring. The latter
// also get those of the system: in a native prison, that is this machine's.
var fileVariables = []string{
	"SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE",
	"BUNDLE_SSL_CA_CERT", "NIX_SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "DENO_CERT",
}

// trustVariables returns the variables with which programs inside find the certificates below a home, as NAME=VALUE.
func trustVariables(home string) (env []string) {
	for _, name := range fileVariables {
		env = append(env, name+"="+home+"/"+TrustFolder+"/bundle.pem")
	}
	return append(env, "WGETRC="+home+"/"+TrustFolder+"/wgetrc", "APT_CONFIG="+home+"/"+TrustFolder+"/apt.conf")
}

// WithTrust adds the variables that programs need in a network. If the network sees requests, or this machine has certificates
// of its own, it also adds those with which programs trust these certificates. Variables that spec already has win, and warning names the
// effect.
func WithTrust(spec prison.Spec, now time.Time) (with prison.Spec, warning string, err error) {
	if spec.Network == prison.NetworkNone {
		return spec, "", nil
	}
	if spec.Network == prison.NetworkAllowlist {
		spec.Env = append(retryVariables(), spec.Env...)
	}
	rules, err := control.ReadRules(spec.Dir)
	seen := seesRequests(spec, rules, now)
	if err != nil || !seen && rules.Added == "" {
		return spec, "", err
	}
	trust := trustVariables("/home/" + spec.User)
	if replaced := replacing(spec.Env, trust); len(replaced) > 0 && seen {
		warning = fmt.Sprintf("programs that read %s from you do not trust the network at hosts with a credential or a path, unless that has the certificates of %s",
			strings.Join(replaced, ", "), TrustFolder)
	}
	spec.Env = append(trust, spec.Env...)
	return spec, warning, nil
}

// replacing returns the names of variables that have other values in an environment. Of two values for a name the later one counts.
func replacing(env, variables []string) (names []string) {
	for _, v := range variables {
		name, _, _ := strings.Cut(v, "=")
		last := v
		for _, other := range env {
			if strings.HasPrefix(other, name+"=") {
				last = other
			}
		}
		if last != v {
			names = append(names, name)
		}
	}
	return names
}

// retryVariables returns the variables, as NAME=VALUE, with which npm waits for seconds before it tries again. Without them it waits for
// more than a minute before it reports that a host is refused.
func retryVariables() []string {
	return []string{"NPM_CONFIG_FETCH_RETRY_MINTIMEOUT=500", "NPM_CONFIG_FETCH_RETRY_MAXTIMEOUT=2000"}
}

// VariableNames returns the names of all variables that the network of a prison can add to it.
func VariableNames(spec prison.Spec) (names []string) {
	if spec.Network == prison.NetworkNone {
		return nil
	}
	rules, _ := control.ReadRules(spec.Dir) // without them nothing was added
	for _, v := range slices.Concat(retryVariables(), trustVariables(""), Placeholders(rules.Credentials)) {
		name, _, _ := strings.Cut(v, "=")
		names = append(names, name)
	}
	return names
}
