package internet

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// The answer of /pub/bomb, before compression, has bombParts parts of bombPart bytes.
const bombPart, bombParts = 16 << 20, 64

// serveTraps answers requests that try to trick the process that carries a prison's packets: the answer of /pub/bomb is compressed even
// if the client does not ask for that, /pub/headers fails if a header could replace the method or the path, /b64 and /zipped send a key
// back in another form, and /body sends a body back. /own.git is a git repository with one branch.
func serveTraps(mux *http.ServeMux) {
	mux.HandleFunc("/pub/", pong)
	mux.HandleFunc("/v1/", pong)
	mux.HandleFunc("/pub/headers", func(w http.ResponseWriter, r *http.Request) {
		for name := range r.Header {
			if strings.Contains(name, "Override") || strings.Contains(name, "Original") || strings.Contains(name, "Rewrite") || name == "X-Http-Method" {
				http.Error(w, name, http.StatusInternalServerError)
				return
			}
		}
		pong(w, r)
	})
	part := sync.OnceValue(func() []byte { return zipped(make([]byte, bombPart)) })
	mux.HandleFunc("/pub/bomb", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		for range bombParts {
			w.Write(part()) // the client may disconnect
		}
	})
	mux.HandleFunc("/b64", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, base64.StdEncoding.EncodeToString([]byte(r.Header.Get("Authorization"))))
	})
	mux.HandleFunc("/zipped", func(w http.ResponseWriter, r *http.Request) {
		text := []byte(r.Header.Get("Authorization") + "\n")
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			text = zipped(text)
		}
		w.Write(text)
	})
	mux.HandleFunc("/body", func(w http.ResponseWriter, r *http.Request) { io.Copy(w, io.LimitReader(r.Body, 1<<20)) })
	const commit = "0123456789abcdef0123456789abcdef01234567"
	mux.HandleFunc("/own.git/HEAD", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ref: refs/heads/main\n") })
	mux.HandleFunc("/own.git/info/refs", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "%s\trefs/heads/main\n", commit) })
}

func pong(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "pong\n") }

// zipped returns a text compressed with gzip.
func zipped(text []byte) []byte {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(text)
	z.Close()
	return packed.Bytes()
}
