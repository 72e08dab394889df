package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

func init() { scriptCommands["troubledengine"] = cmdTroubledEngine }

// troubledengine sets DOCKER_HOST to a socket that passes all requests to the engine, except those that fail because of the word in the file
// $WORK/trouble: with "full" the disk of the engine is full when a container starts, and with "slow" the engine never removes an image.
func cmdTroubledEngine(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 0, "troubledengine")
	socket, local := strings.CutPrefix(ts.Getenv("DOCKER_HOST"), "unix://")
	if !local {
		socket = "/var/run/docker.sock"
	}
	dir, err := os.MkdirTemp("/tmp", "engine") // the path of a socket must be short
	ts.Check(err)
	ts.Defer(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	ts.Check(err)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "engine"}) },
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}},
		FlushInterval: -1,
	}
	trouble := ts.MkAbs(filepath.Join(ts.Getenv("WORK"), "trouble"))
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch kind := readOr(trouble, ""); {
		case kind == "full\n" && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/start") && strings.Contains(r.URL.Path, "/containers/"):
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusInternalServerError)
			w.Write([]byte(`{"message": "mkdir /engine/overlay2/1: no space left on device"}`))
		case kind == "slow\n" && r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/images/"):
			<-r.Context().Done()
		default:
			proxy.ServeHTTP(w, r)
		}
	})}
	go server.Serve(l)
	ts.Defer(func() { server.Close() })
	ts.Setenv("DOCKER_HOST", "unix://"+l.Addr().String())
}
