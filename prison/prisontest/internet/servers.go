package internet

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison/prisontest/internet/registries"
)

// rawPorts are TCP ports with a server that greets as SSH does, and echoes. They include the ports of DNS, of DNS over TLS, and of two
// servers that only this machine should reach.
var rawPorts = []string{"22", "53", "853", "5432", "9000", "9001"}

// datagramPorts are UDP ports with a server that only logs.
var datagramPorts = []string{"443", "853", "5353", "5355", "9000"}

// Serve runs all servers that a prison may try to reach, on all addresses of this process's network namespace. It does not return. It
// serves the files in folder/www, and those of package registries. When all servers listen, it makes the file ready.
//
// It writes what the servers receive into files of the folder: dns.log has "NAME" for each DNS question, connections.log "PORT ADDRESS"
// for each connection, proxy.log "HOST:PORT USER:PASSWORD" for each request to the proxy at port 3128, requests.log "HOST METHOD PATH"
// for each request, tls.log "NAME PROTOCOL..." for each TLS hello, keys.log "HOST HEADER KEY" for each request for /key, and raw.log
// "PORT DATA" for all others. ca.pem has the certificate of the authority.
//
// The file names may have more names of servers, one on each line. Serve then runs the program folder/model, which must listen on
// 127.0.0.1:8089, and passes it all requests to these names.
func Serve(folder string) {
	questions, err := net.ListenPacket("udp", ":53")
	must(err)
	others := namesIn(folder)
	go answerQuestions(questions, logOf(folder, "dns"), slices.Concat(others, registries.Hosts()))
	connections, raw := logOf(folder, "connections"), logOf(folder, "raw")
	for _, port := range datagramPorts {
		c, err := net.ListenPacket("udp", ":"+port)
		must(err)
		go hearDatagrams(c, port, raw)
	}
	handler := pages(folder)
	if len(others) > 0 {
		handler = model(folder, others, handler)
	}
	config := tlsConfig(folder, slices.Concat(others, registries.Hosts()))
	for _, port := range append([]string{"80", "443", "8080", "3128", "9418"}, rawPorts...) {
		l, err := net.Listen("tcp", ":"+port)
		must(err)
		l = heard{l, connections}
		switch port {
		case "443":
			go (&http.Server{Handler: handler, ErrorLog: quiet}).Serve(tls.NewListener(l, config))
		case "80", "8080":
			go (&http.Server{Handler: handler, ErrorLog: quiet}).Serve(l)
		case "3128":
			go (&http.Server{Handler: proxy(folder, logOf(folder, "proxy")), ErrorLog: quiet}).Serve(l)
		case "9418":
			go serveGit(l, filepath.Join(folder, "www"))
		default:
			go serveBanner(l, port, raw)
		}
	}
	must(os.WriteFile(filepath.Join(folder, "ready"), nil, 0o644))
	select {}
}

// namesIn returns the names in the file names.
func namesIn(folder string) []string {
	content, _ := os.ReadFile(filepath.Join(folder, "names")) // the file may not exist
	return strings.Fields(string(content))
}

// serveGit runs git daemon for the repositories in a folder.
func serveGit(l net.Listener, folder string) {
	for {
		c, err := l.Accept()
		must(err)
		go func() {
			defer c.Close()
			program := exec.Command("git", "-c", "safe.directory=*", "daemon", "--inetd", "--export-all", "--base-path="+folder)
			program.Stdin, program.Stdout = c, c
			program.Run() // if it fails, the client reports that
		}()
	}
}

// model starts the program model, and returns a handler that passes it all requests to the names. others handles all other requests.
func model(folder string, names []string, others http.Handler) http.Handler {
	program := exec.Command(filepath.Join(folder, "model"))
	program.SysProcAttr = endingWithThis()
	runtime.LockOSThread() // the program must end with this thread, so the thread must stay
	must(program.Start())
	to := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", "127.0.0.1:8089", r.In.Host
	}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(names, r.Host) {
			to.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	})
}

var quiet = log.New(io.Discard, "", 0)

// pages returns the handler of all requests, and logs them.
func pages(folder string) http.Handler {
	requests := logOf(folder, "requests")
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(filepath.Join(folder, "www"))))
	mux.HandleFunc("/ping", pong)
	mux.HandleFunc("/try/", pong)
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) { // sends text until the client disconnects
		for r.Context().Err() == nil {
			io.WriteString(w, "slow\n")
			w.(http.Flusher).Flush()
			time.Sleep(10 * time.Millisecond)
		}
	})
	mux.HandleFunc("/clock", func(w http.ResponseWriter, r *http.Request) { // sends the time as events until the client disconnects
		for r.Context().Err() == nil {
			fmt.Fprintf(w, "data: %d\n\n", time.Now().UnixNano())
			w.(http.Flusher).Flush()
			time.Sleep(5 * time.Millisecond)
		}
	})
	mux.HandleFunc("/repeat", func(w http.ResponseWriter, r *http.Request) { // sends the request's text, and no more until the client disconnects
		io.WriteString(w, r.FormValue("text"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("/later", func(w http.ResponseWriter, _ *http.Request) { // sends the head of the answer, and the rest after a pause
		w.(http.Flusher).Flush()
		time.Sleep(25 * time.Second)
		io.WriteString(w, "pong\n")
	})
	mux.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.FormValue("to"), http.StatusFound) })
	mux.HandleFunc("/socket", echoSocket)
	serveKeys(mux, logOf(folder, "keys"))
	serveTraps(mux)
	for host, registry := range registries.Handlers(filepath.Join(folder, "www")) {
		mux.Handle(host+"/", registry)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Print(r.Host, " ", r.Method, " ", r.URL.Path)
		mux.ServeHTTP(w, r)
	})
}

// proxy connects each request, for any host name, to the server at its port in this network namespace, and logs it.
// If the file proxy-status is in the folder, its number is the status of the answer instead.
func proxy(folder string, asked *log.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth()
		asked.Print(r.Host, " ", user, ":", password)
		if status, err := os.ReadFile(filepath.Join(folder, "proxy-status")); err == nil {
			n, _ := strconv.Atoi(strings.TrimSpace(string(status)))
			w.WriteHeader(n)
			return
		}
		_, port, _ := net.SplitHostPort(r.Host)
		far, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil || r.Method != http.MethodConnect {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer far.Close()
		near, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer near.Close()
		io.WriteString(near, "HTTP/1.1 200 Connected\r\n\r\n")
		go func() {
			io.Copy(far, buffered)
			far.(*net.TCPConn).CloseWrite()
		}()
		io.Copy(near, far)
	})
}

// serveKeys answers requests with keys: /key logs them, /echo sends them back, /need/KEY answers any other key with the status 401, /fail/STATUS
// answers with a status, and /silent answers nothing until the client disconnects.
func serveKeys(mux *http.ServeMux, keys *log.Logger) {
	mux.HandleFunc("/key", func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Cookie"} {
			for _, key := range r.Header.Values(name) {
				keys.Print(r.Host, " ", name, " ", key)
			}
		}
		io.WriteString(w, "seen\n")
	})
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s\n", r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"))
	})
	mux.HandleFunc("/fail/", func(w http.ResponseWriter, r *http.Request) {
		status, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/fail/"))
		w.WriteHeader(max(status, http.StatusOK))
	})
	mux.HandleFunc("/silent", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/need/", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+strings.TrimPrefix(r.URL.Path, "/need/") {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
}

// echoSocket switches to another protocol, and echoes.
func echoSocket(w http.ResponseWriter, _ *http.Request) {
	c, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
	io.Copy(c, buffered) // the client may disconnect
}

// hearDatagrams logs datagrams, and does not answer them.
func hearDatagrams(c net.PacketConn, port string, to *log.Logger) {
	buf := make([]byte, 1<<16)
	for {
		n, _, err := c.ReadFrom(buf)
		must(err)
		to.Printf("%s %q", port, buf[:min(n, 200)])
	}
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

// heard is a listener that logs each connection.
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

// serveBanner greets as SSH does, and echoes. It logs the first data of each connection.
func serveBanner(l net.Listener, port string, to *log.Logger) {
	for {
		c, err := l.Accept()
		must(err)
		go func() {
			defer c.Close()
			fmt.Fprint(c, "SSH-2.0-internet\r\n")
			buf := make([]byte, 200)
			n, _ := c.Read(buf)
			to.Printf("%s %q", port, buf[:n])
			c.Write(buf[:n]) // the client may disconnect
			io.Copy(c, c)
		}()
	}
}
