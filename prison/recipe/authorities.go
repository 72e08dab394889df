package recipe

// Authorities is the file of a build's context with the certificates of [Recipe.TrustingDockerfile].
const Authorities = "authorities.pem"

// authoritiesFolder contains the certificates while the steps run. The last step removes it.
const authoritiesFolder = "/tmp/authorities"

// bundleVariables are read by the programs of the steps. Package managers that an image contains take the value of the image instead.
var bundleVariables = []string{
	"SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "CARGO_HTTP_CAINFO",
}

// TrustingDockerfile is [Recipe.Dockerfile] with steps that also trust the certificates in the file [Authorities]. The files of the image are
// the same: neither the certificates nor the variables that name them are left.
func (r Recipe) TrustingDockerfile(base string) []byte { return r.dockerfile(base, true) }

// copyAuthorities writes the steps that make programs of the following steps trust [Authorities].
func (w *writer) copyAuthorities() {
	w.line("COPY %s %s/own.pem", Authorities, authoritiesFolder)
	w.line(`RUN echo 'Acquire::https::CAInfo "%[1]s/bundle.pem";' >%[1]s/apt.conf`, authoritiesFolder)
	w.joinAuthorities()
	for _, name := range bundleVariables {
		w.arg(name, authoritiesFolder+"/bundle.pem")
	}
	w.arg("APT_CONFIG", authoritiesFolder+"/apt.conf")
}

// joinAuthorities writes a step that puts [Authorities] and the certificates of the image into one file. An image without the package
// ca-certificates has none at first.
func (w *writer) joinAuthorities() {
	w.line("RUN cd %s; system=/etc/ssl/certs/ca-certificates.crt; test -r $system || system=; cat $system own.pem >bundle.pem", authoritiesFolder)
}

// removeAuthorities writes the step that removes what copyAuthorities wrote.
func (w *writer) removeAuthorities() { w.line("RUN rm -r %s", authoritiesFolder) }
