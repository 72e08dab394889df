package session

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/network"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

const (
	// trustFolder is the folder in the agent's home with the certificates of the servers that the network answers for. The file
	// own.pem has these alone, and bundle.pem has those of the system as well.
	trustFolder = ".local/share/certificates"
	// trustPatience bounds the time for writing them.
	trustPatience = 10 * time.Second
	// maxComplaint bounds what a failed script may say.
	maxComplaint = 200
)

// trustScript writes the certificates from its standard input. A program that reads a file meanwhile sees the old one or the new one.
const trustScript = `
set -e
umask 022
cd
mkdir -p ` + trustFolder + `
cd ` + trustFolder + `
cat >own.new
base=/dev/null
for f in /etc/ssl/cert.pem /etc/ssl/ca-bundle.pem /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/certs/ca-certificates.crt; do
	if test -r $f; then base=$f; fi
done
{ cat $base; echo; cat own.new; } >bundle.new
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

// withTrust adds the variables for certificates to a prison whose network judges requests. The user's own variables win.
func (c resolved) withTrust(spec prison.Spec) (prison.Spec, error) {
	if spec.Network != prison.NetworkAllowlist {
		return spec, nil
	}
	rules, err := control.ReadRules(spec.Dir)
	if err != nil || !network.JudgesRequests(rules, c.session.Now()) {
		return spec, err
	}
	var env []string
	folder := "/home/" + spec.User + "/" + trustFolder
	for _, name := range bundleVariables {
		env = append(env, name+"="+folder+"/bundle.pem")
	}
	for _, name := range ownVariables {
		env = append(env, name+"="+folder+"/own.pem")
	}
	spec.Env = append(env, spec.Env...)
	return spec, nil
}

// trust lets programs in a prison that was just started trust the network where it answers for servers. If that fails, the agent has
// prevented it, and only its own programs suffer.
func (s *Session) trust(ctx context.Context, r airlock.Record) error {
	spec, err := s.Prisons().Spec(r)
	if err != nil || spec.Network != prison.NetworkAllowlist {
		return err
	}
	rules, err := control.ReadRules(spec.Dir)
	if err != nil || !network.JudgesRequests(rules, s.Now()) {
		return err
	}
	certificates, err := network.AwaitAuthorities(ctx, spec.Dir)
	if err != nil {
		return err
	}
	s.writeTrust(ctx, r, certificates)
	return nil
}

// trustAgain does the same after a change of rules in a running prison.
func (s *Session) trustAgain(ctx context.Context, r airlock.Record, dir string, before control.State) error {
	after, err := control.ReadState(dir)
	if err != nil || after.Authorities == before.Authorities || after.Authorities == "" {
		return err
	}
	if before.Authorities == "" {
		s.Report.Say("programs inside do not trust the network's certificates for such a rule before the prison is started again")
		s.Report.Hint("git airlock stop && git airlock start")
	} else {
		s.Report.Say("programs inside that are started from now on trust the network's certificates; running ones may have to be started again")
	}
	s.writeTrust(ctx, r, after.Authorities)
	return nil
}

// writeTrust writes certificates into the home inside, as the agent.
func (s *Session) writeTrust(ctx context.Context, r airlock.Record, certificates string) {
	ctx, cancel := context.WithTimeout(ctx, trustPatience)
	defer cancel()
	err := func() error {
		box, err := s.Prisons().Attach(ctx, r)
		if err != nil {
			return err
		}
		defer box.Close()
		complaint := prison.Capped{Max: maxComplaint}
		status, err := box.Exec(ctx, prison.Process{
			Argv: []string{"/bin/sh", "-c", trustScript}, Stdin: strings.NewReader(certificates), Stderr: &complaint,
		})
		if err == nil && status != 0 {
			err = fmt.Errorf("exit status %d: %s", status, gitops.Text(strings.TrimSpace(string(complaint.Bytes()))))
		}
		return err
	}()
	if err != nil {
		s.Report.Say("programs inside do not trust the network's certificates: write %s: %s", trustFolder, gitops.Text(err.Error()))
	}
}
