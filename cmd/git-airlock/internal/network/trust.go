package network

import (
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/egress/control"
)

// TrustFolder is the folder in the agent's home with the certificates of the servers that the network answers for. The file own.pem
// has these alone, and bundle.pem has those of the system as well. wgetrc and apt.conf name bundle.pem for programs that read it from
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

// bundleVariables are read by programs that take a file with all certificates, ownVariables by those that add a file to the
// certificates that they bring.
var (
	bundleVariables = []string{
		"SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE",
		"BUNDLE_SSL_CA_CERT", "NIX_SSL_CERT_FILE",
	}
	ownVariables = []string{"NODE_EXTRA_CA_CERTS", "DENO_CERT"}
)

// TrustVariables returns the variables with which programs inside find the certificates below a home, as NAME=VALUE.
func TrustVariables(home string) (env []string) {
	for _, name := range bundleVariables {
		env = append(env, name+"="+home+"/"+TrustFolder+"/bundle.pem")
	}
	for _, name := range ownVariables {
		env = append(env, name+"="+home+"/"+TrustFolder+"/own.pem")
	}
	return append(env, "WGETRC="+home+"/"+TrustFolder+"/wgetrc", "APT_CONFIG="+home+"/"+TrustFolder+"/apt.conf")
}

// RetryVariables returns the variables, as NAME=VALUE, with which npm waits for seconds before it tries again. Without them it waits for
// more than a minute before it reports that a host is refused.
func RetryVariables() []string {
	return []string{"NPM_CONFIG_FETCH_RETRY_MINTIMEOUT=500", "NPM_CONFIG_FETCH_RETRY_MAXTIMEOUT=2000"}
}

// VariableNames returns the names of all variables that the network of a prison adds to it.
func VariableNames(spec prison.Spec) (names []string) {
	if spec.Network != prison.NetworkAllowlist {
		return nil
	}
	rules, _ := control.ReadRules(spec.Dir) // without them nothing was added
	for _, v := range slices.Concat(RetryVariables(), TrustVariables(""), Placeholders(rules.Credentials)) {
		name, _, _ := strings.Cut(v, "=")
		names = append(names, name)
	}
	return names
}
