package main

import (
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
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// internet is the program "internet-servers FOLDER": every server that a script's prison may reach, on all addresses of the network
// namespace that it runs in. It writes what it hears into files of the folder: the names of DNS questions into dns.log, "PORT
// ADDRESS" of each connection into connections.log, and "HOST METHOD PATH" of each request into requests.log. Its certificate
// is in ca.pem. Files of www are served. When everything listens, it makes the file ready.
func internet() {
	folder := os.Args[1]
	certificate, err := newCertificate(filepath.Join(folder, "ca.pem"))
	must(err)
	questions, err := net.ListenPacket("udp", ":53")
	must(err)
	go answerQuestions(questions, logOf(folder, "dns"))
	connections, requests := logOf(folder, "connections"), logOf(folder, "requests")
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(filepath.Join(folder, "www"))))
	mux.HandleFunc("/ping", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "pong\n") })
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) { // until the client goes
		for r.Context().Err() == nil {
			io.WriteString(w, "slow\n")
			w.(http.Flusher).Flush()
			time.Sleep(10 * time.Millisecond)
		}
	})
	mux.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.FormValue("to"), http.StatusFound) })
	logged := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Print(r.Host, " ", r.Method, " ", r.URL.Path)
		mux.ServeHTTP(w, r)
	})
	config := &tls.Config{Certificates: []tls.Certificate{certificate}}
	quiet := log.New(io.Discard, "", 0)
	for _, port := range []string{"22", "80", "443", "8080"} {
		l, err := net.Listen("tcp", ":"+port)
		must(err)
		l = heard{l, connections}
		switch port {
		case "22":
			go serveBanner(l)
		case "443":
			go http.Serve(tls.NewListener(l, config), logged)
		default:
			go (&http.Server{Handler: logged, ErrorLog: quiet}).Serve(l)
		}
	}
	must(os.WriteFile(filepath.Join(folder, "ready"), nil, 0o644))
	select {}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func logOf(folder, name string) *log.Logger {
	f, err := os.OpenFile(filepath.Join(folder, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	must(err)
	return log.New(f, "", 0)
}

// heard logs each connection.
type heard struct {
	net.Listener
	to *log.Logger
}

func (h heard) Accept() (net.Conn, error) {
	c, err := h.Listener.Accept()
	if err == nil {
		host, port, _ := net.SplitHostPort(c.LocalAddr().String())
		h.to.Print(port, " ", strings.TrimPrefix(host, "::ffff:"))
	}
	return c, err
}

// serveBanner greets as SSH does, and echoes.
func serveBanner(l net.Listener) {
	for {
		c, err := l.Accept()
		must(err)
		go func() {
			defer c.Close()
			fmt.Fprint(c, "SSH-2.0-internet\r\n")
			io.Copy(c, c)
		}()
	}
}

// newCertificate makes a certificate for the names of the scripts, and writes it to a file.
func newCertificate(file string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "internet"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		DNSNames: []string{"files.test", "api.test", "evil.test", "*.a.test"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	content := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, os.WriteFile(file, content, 0o644)
}

// publicServer is an address of the servers that a prison may reach.
const publicServer = "198.51.100.10"

// namedAddresses are those of names below test. Every other name has the address of [publicServer].
var namedAddresses = map[string][]string{
	"metadata.test.": {"169.254.169.254"}, "lan.test.": {"10.9.9.9"}, "host.test.": {"198.51.100.1"}, "both.test.": {publicServer, "10.9.9.9"},
}

// answerQuestions is a DNS server.
func answerQuestions(c net.PacketConn, logged *log.Logger) {
	buf := make([]byte, 4096)
	for {
		n, from, err := c.ReadFrom(buf)
		must(err)
		var m dnsmessage.Message
		if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		q := m.Questions[0]
		name := strings.ToLower(q.Name.String())
		logged.Print(name)
		m = dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}, Questions: m.Questions}
		addresses := namedAddresses[name]
		switch {
		case !strings.HasSuffix(name, ".test."):
			m.RCode = dnsmessage.RCodeNameError
		case addresses == nil:
			addresses = []string{publicServer}
		}
		for _, a := range addresses {
			if q.Type == dnsmessage.TypeA {
				resource := dnsmessage.AResource{A: [4]byte(net.ParseIP(a).To4())}
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 1}, Body: &resource})
			}
		}
		if answer, err := m.Pack(); err == nil {
			c.WriteTo(answer, from) // it is asked again
		}
	}
}
