package credential

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
)

// ErrUnanswered reports that a server closed a connection without an answer to a request with a value.
var ErrUnanswered = errors.New("the server closed the connection without an answer")

// sentKey is the key of an [atomic.Bool] in the context of a request that is sent once.
type sentKey struct{}

// Once returns the context of a request that [NotAgain] lets a transport send once.
func Once(ctx context.Context) context.Context {
	sent := new(atomic.Bool)
	ctx = context.WithValue(ctx, sentKey{}, sent)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
}

// NotAgain returns [ErrUnanswered] for a request of [Once] that was sent before. As the Proxy of an [http.Transport] it is called before each
// attempt: a transport sends some requests again if the server closes the connection, although the server may have read and done them.
// The limit and the record count such a request once. NotAgain selects no proxy. A stream of HTTP/2 that the server refuses unread is not
// such a request, and can begin again.
func NotAgain(r *http.Request) (proxy *url.URL, err error) {
	if sent, ok := r.Context().Value(sentKey{}).(*atomic.Bool); ok && sent.Load() {
		return nil, ErrUnanswered
	}
	return nil, nil
}
