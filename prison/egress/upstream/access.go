package upstream

import (
	"crypto/x509"
	"sync"

	"github.com/git-airlock/git-airlock/prison/egress/control"
)

// Access has the password of a network's proxy. The zero value is ready for use.
type Access struct {
	mu       sync.Mutex
	password string
}

// Take removes the password of the proxy from the values of credentials, and keeps it.
func (a *Access) Take(values map[string]string) {
	password, some := values[control.ProxyPassword]
	if !some {
		return
	}
	delete(values, control.ProxyPassword)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.password = password
}

// Way returns the way through a proxy, or nil for the zero value.
func (a *Access) Way(p Proxy, roots func() (*x509.CertPool, error)) *Way {
	if p == (Proxy{}) {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return &Way{Proxy: p, Password: a.password, Roots: roots}
}
