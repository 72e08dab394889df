package request

import (
	"maps"
	"net/http"
	"slices"

	"github.com/git-airlock/git-airlock/prison/egress/credential"
)

// Forwarding are headers that a reverse proxy of net/http/httputil removes from a request. The network passes them on, since it adds none of its own.
var Forwarding = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

// Overrides are headers by which some servers replace the method, the path or the host of a request.
var Overrides = []string{
	"x-http-method", "x-http-method-override", "x-method-override", "x-original-method", "x-forwarded-method",
	"x-original-url", "x-original-uri", "x-forwarded-url", "x-forwarded-uri", "x-rewrite-url", "x-rewrite-uri",
	"x-original-path", "x-forwarded-path", "x-forwarded-prefix", "x-envoy-original-path",
	"x-original-host", "x-forwarded-host", "x-forwarded-server", "x-host", "x-http-host-override", "forwarded",
}

// framing are headers by which servers find the end of a request, or the site that it is for.
var framing = []string{"content-length", "transfer-encoding", "te", "trailer", "connection", "upgrade", "expect", "host", "content-encoding"}

// RemoveVariants removes headers whose names a server could take for one of framing, such as Transfer_Encoding.
func RemoveVariants(h http.Header) {
	maps.DeleteFunc(h, func(name string, _ []string) bool {
		plain := credential.PlainName(name)
		return slices.Contains(framing, plain) && name != http.CanonicalHeaderKey(plain)
	})
}

// Remove removes headers in any spelling of their names, which are in the form of [credential.PlainName].
func Remove(h http.Header, names []string) {
	maps.DeleteFunc(h, func(name string, _ []string) bool { return slices.Contains(names, credential.PlainName(name)) })
}

// Forms are headers that ask for a part of an answer, or for another form of it, in which a value would not be found.
var Forms = []string{"accept-encoding", "accept-charset", "range", "request-range", "x-range", "if-range", "a-im"}
