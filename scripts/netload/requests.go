package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"strconv"
	"strings"
	"time"
)

// client returns an HTTP client with connections of its own. NETLOAD_VIA in the environment is the address of a relay to
// connect to in place of the server's.
func client() *http.Client {
	t := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true}
	t.Protocols.SetHTTP1(true)
	if via := os.Getenv("NETLOAD_VIA"); via != "" {
		t.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, via)
		}
	}
	return &http.Client{Transport: t}
}

// get sends one request, with the key NETLOAD_KEY of the environment if there is one.
func get(c *http.Client, url string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if key := os.Getenv("NETLOAD_KEY"); key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	answer, err := c.Do(r)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, answer.Status)
	}
	return answer, err
}

// ask measures n requests, all over one connection, or each over a new one.
func ask(url string, n int, anew bool) error {
	c, all := client(), make([]time.Duration, n)
	for i := range n + 1 { // the first one is not counted
		if anew {
			c.CloseIdleConnections()
		}
		begun := time.Now()
		answer, err := get(c, url)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			return err
		}
		if answer.Body.Close(); i > 0 {
			all[i-1] = time.Since(begun)
		}
	}
	report(all)
	return nil
}

// events measures how long after the server wrote it each of n events arrives. An event has the server's time in
// nanoseconds.
func events(url string, n int) error {
	answer, err := get(client(), url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	lines, all := bufio.NewScanner(answer.Body), make([]time.Duration, 0, n)
	for len(all) < n && lines.Scan() {
		text, isData := strings.CutPrefix(lines.Text(), "data: ")
		if !isData {
			continue
		}
		nanos, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return err
		}
		all = append(all, time.Duration(time.Now().UnixNano()-nanos))
	}
	if len(all) < n {
		return fmt.Errorf("%d events of %d: %w", len(all), n, lines.Err())
	}
	report(all)
	return nil
}

// relay is the floor of a request whose key is replaced: it answers for a server with a certificate of its own, in place of FILE, and
// sends each request on with another key, over TLS. It looks at nothing.
func relay(address, nameAndFile string) error {
	name, file, _ := strings.Cut(nameAndFile, ",")
	certificate, err := selfSigned(name, file)
	if err != nil {
		return err
	}
	proxy := &httputil.ReverseProxy{FlushInterval: time.Millisecond, Transport: own{}, ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "https", name, name
		r.Out.Header.Set("Authorization", "Bearer other")
	}}
	server := &http.Server{
		Addr: address, Handler: proxy, ReadHeaderTimeout: time.Minute, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, own{}, &http.Transport{DisableCompression: true, IdleConnTimeout: time.Second})
		},
	}
	return server.ListenAndServeTLS("", "")
}

// own sends the requests of each connection over a connection of their own, as the network of an airlock does.
type own struct{}

// RoundTrip implements [http.RoundTripper].
func (own) RoundTrip(r *http.Request) (*http.Response, error) {
	return r.Context().Value(own{}).(*http.Transport).RoundTrip(r)
}

// selfSigned makes a certificate for a name, and writes it into a file.
func selfSigned(name, file string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	err = os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
