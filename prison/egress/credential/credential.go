// Package credential puts the values of credentials into requests that leave a prison, and keeps them out of the answers.
//
// A program inside has only a placeholder for a value: random text in the form of the service's keys, which is worth nothing
// elsewhere. [Find] looks for placeholders wherever HTTP clients put credentials, and refuses a request with any other
// credential under a usual name, so that an attacker's own account at an allowed server is hard to use. [Credential.Apply] writes
// the value into the header that the service reads. [Echoes] finds a value in an answer.
//
// The package treats all requests and answers as an attacker's.
package credential

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Credential describes how a value gets into requests.
type Credential struct {
	Name        string
	Header      string // the name of the header that gets the value
	Format      string // of that header, with one %s for the value; see [CheckFormat]
	Placeholder string // what programs inside have instead of the value
}

// basic begins a format whose rest, USER:PASSWORD, is encoded in base64 (RFC 7617).
const basic = "Basic "

// CheckFormat returns an error for a format that is not text with one %s, such as "Bearer %s" or "Basic user:%s".
func CheckFormat(format string) error {
	if strings.Count(format, "%s") != 1 || strings.Count(format, "%") != 1 || CheckValue(strings.ReplaceAll(format, " ", "")) != nil {
		return fmt.Errorf("%q is not text with one %%s for the value, such as \"Bearer %%s\"", format)
	}
	return nil
}

// The limits of the length of a value in bytes. A shorter one would be found in many answers.
const minValue, maxValue = 8, 16 << 10

// CheckValue returns an error for a value that cannot be in a header. The error does not contain the value.
func CheckValue(value string) error {
	switch strange := func(c rune) bool { return c <= ' ' || c > '~' }; {
	case value == "":
		return errors.New("the value is empty")
	case strings.ContainsFunc(value, strange):
		return errors.New("the value has characters other than visible ASCII")
	case len(value) > maxValue:
		return fmt.Errorf("the value is longer than %d bytes", maxValue)
	}
	return nil
}

// IsShort reports whether a value is too short to be a secret.
func IsShort(value string) bool { return len(value) < minValue }

// write returns the header for a value.
func (c Credential) write(value string) string {
	text := strings.Replace(c.Format, "%s", value, 1)
	if login, ok := strings.CutPrefix(text, basic); ok {
		return basic + base64.StdEncoding.EncodeToString([]byte(login))
	}
	return text
}

// Apply replaces all credentials in the headers of a request by a value.
func (c Credential) Apply(h http.Header, value string) {
	c.Strip(h)
	h.Set(c.Header, c.write(value))
}

// Strip removes all credentials and cookies from the headers of a request.
func (c Credential) Strip(h http.Header) {
	for name := range h {
		if carries(name, c.Header) || strings.EqualFold(name, "Cookie") {
			delete(h, name)
		}
	}
}

// Find returns the credential whose placeholder a request has, or nil for a request without any. here are the credentials
// for the request, and elsewhere all others. For a host with a credential, guarded is set, and any other credential is an error.
func Find(h http.Header, query string, guarded bool, here, elsewhere []Credential) (used *Credential, err error) {
	headers := headersOf(slices.Concat(here, elsewhere))
	for name, values := range h {
		for _, value := range values {
			if c := within(value, elsewhere); c != nil {
				return nil, fmt.Errorf("the credential %s is not for this request (placeholder in %s)", c.Name, name)
			}
			if !guarded || !carries(name, headers...) || isEmpty(value) {
				continue
			}
			c := match(value, here)
			switch {
			case c == nil:
				return nil, fmt.Errorf("the credential in %s is not this prison's", name)
			case used != nil && used.Name != c.Name:
				return nil, fmt.Errorf("the request has two credentials, %s and %s", used.Name, c.Name)
			}
			used = c
		}
	}
	if guarded {
		err = checkQuery(query)
	} else if c := within(query, elsewhere); c != nil {
		err = fmt.Errorf("the credential %s is not for this request (placeholder in the query)", c.Name)
	}
	if err == nil && guarded {
		err = checkProtocols(h)
	}
	return used, err
}

func headersOf(all []Credential) (names []string) {
	for _, c := range all {
		names = append(names, c.Header)
	}
	return names
}

// carriers are parts of the names of headers that carry credentials. The list cannot be whole, as that of parameters: services can choose any
// name.
var carriers = []string{
	"authorization", "api-key", "apikey", "api-token", "auth-token", "access-token", "private-token", "job-token", "security-token", "vault-token",
	"client-secret", "x-auth", "x-token",
}

// PlainName returns the form in which names of headers are compared: lower case, with hyphens. Servers that give headers to programs as
// variables (CGI, RFC 3875) do not distinguish characters other than letters and digits.
func PlainName(header string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'A' && c <= 'Z':
			return c - 'A' + 'a'
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			return c
		}
		return '-'
	}, header)
}

// carries reports whether a header carries credentials according to its name. others are the names of further such headers.
func carries(name string, others ...string) bool {
	name = PlainName(name)
	return slices.ContainsFunc(others, func(o string) bool { return PlainName(o) == name }) ||
		slices.ContainsFunc(carriers, func(part string) bool { return strings.Contains(name, part) })
}

// schemes are the words before a credential in a header, in lower case.
var schemes = []string{"bearer", "token", "basic", "apikey", "key"}

// split separates the scheme of a header's value from the credential.
func split(value string) (scheme, rest string) {
	value = strings.TrimSpace(value)
	scheme, rest, _ = strings.Cut(value, " ")
	if scheme = strings.ToLower(scheme); slices.Contains(schemes, scheme) {
		return scheme, strings.TrimSpace(rest)
	}
	return "", value
}

// isEmpty reports whether a header has no credential. Some clients send only a scheme.
func isEmpty(value string) bool {
	_, rest := split(value)
	return rest == ""
}

// match returns the credential whose placeholder is the whole value of a header after the scheme, or the user or the password of a login.
func match(value string, all []Credential) *Credential {
	scheme, rest := split(value)
	user, password := "", ""
	if login, err := base64.StdEncoding.DecodeString(rest); err == nil && scheme == "basic" {
		user, password, _ = strings.Cut(string(login), ":")
	}
	i := slices.IndexFunc(all, func(c Credential) bool {
		p := c.Placeholder
		// Beside the placeholder, a login has a name, which is not secret, or words such as x-oauth-basic.
		return p != "" && (rest == p || user == p && !isSecret(password) || password == p && !isSecret(user) || value == c.write(p))
	})
	if i < 0 {
		return nil
	}
	return &all[i]
}

// isSecret reports whether one half of a login could be a credential of its own.
func isSecret(half string) bool { return len(half) >= 20 }

// within returns the credential whose placeholder is somewhere in a text, also in a login.
func within(text string, all []Credential) *Credential {
	login := ""
	if scheme, rest := split(text); scheme == "basic" {
		if decoded, err := base64.StdEncoding.DecodeString(rest); err == nil {
			login = string(decoded)
		}
	}
	i := slices.IndexFunc(all, func(c Credential) bool {
		return c.Placeholder != "" && (strings.Contains(text, c.Placeholder) || strings.Contains(login, c.Placeholder))
	})
	if i < 0 {
		return nil
	}
	return &all[i]
}

// parameters are the names of query parameters in which services take credentials, in lower case and without other characters: some
// services take "$key" for "key", and PHP takes "api.key" for "api_key".
var parameters = []string{
	"key", "apikey", "accesskey", "accesstoken", "authtoken", "oauthtoken", "privatetoken", "jobtoken", "token", "xapikey", "xgoogapikey", "authorization",
	"clientsecret", "password", "jwt", "sig", "xamzsignature", "xamzsecuritytoken", "xgoogsignature",
}

// isParameter reports whether services take a credential in a query parameter of this name, or in a field of it such as "user[password]".
// "filter[key]" is not one: a field of the name key mostly has another meaning.
func isParameter(name string) bool {
	fields := strings.FieldsFunc(name, func(c rune) bool { return c == '[' || c == ']' })
	for i, field := range append(fields, name) {
		field = strings.ReplaceAll(PlainName(field), "-", "")
		if slices.Contains(parameters, field) && (i == 0 || i == len(fields) || field != "key") {
			return true
		}
	}
	return false
}

// checkQuery returns an error for a query that may have a credential. Placeholders in it are not replaced, because servers and proxies log
// URLs.
func checkQuery(query string) error {
	for part := range strings.FieldsFuncSeq(query, func(c rune) bool { return c == '&' || c == ';' }) {
		name, value, _ := strings.Cut(part, "=")
		decoded, err := url.QueryUnescape(name)
		if err != nil || value != "" && isParameter(decoded) {
			return errors.New("the query has a credential, or cannot be read; only headers may have one")
		}
	}
	return nil
}

// checkProtocols returns an error for a WebSocket whose list of protocols has a credential, as browsers send it.
func checkProtocols(h http.Header) error {
	for name, values := range h {
		if PlainName(name) != "sec-websocket-protocol" {
			continue
		}
		value := strings.ToLower(strings.Join(values, ","))
		if strings.Contains(value, "key") || strings.Contains(value, "token") || strings.Contains(value, "bearer") || strings.Contains(value, "auth") {
			return errors.New("the credential in Sec-WebSocket-Protocol is not this prison's")
		}
	}
	return nil
}
