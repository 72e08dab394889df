package report_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison/prisontest"
)

// browser is a headless Chromium, which is steered over a pipe. It is for one test.
type browser struct {
	t       *testing.T
	to      *os.File
	from    *bufio.Reader
	id      int
	session string
	// seen has what a page must not do: requests, messages of the console, and violations of its policy.
	seen []string
	dir  string
}

// message is a message of the DevTools protocol.
type message struct {
	ID        int             `json:"id,omitempty"`
	Method    string          `json:"method,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Params    any             `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     json.RawMessage `json:"error,omitempty"`
}

// openBrowser starts a browser, or skips the test.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		program, err = exec.LookPath("google-chrome")
	}
	if err != nil {
		err = fmt.Errorf("there is no chromium to look at reports with (sudo apt-get install chromium): %w", err)
	}
	prisontest.Need(t, "chromium", err)
	theirs, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, back, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t, to: to, from: bufio.NewReader(from), dir: t.TempDir()}
	home, err := os.MkdirTemp("", "browser")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
		"--disable-dev-shm-usage", "--disable-extensions", "--disable-sync", "--hide-scrollbars", "--user-data-dir="+home, "--remote-debugging-pipe", "about:blank")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.ExtraFiles = []*os.File{theirs, back} // descriptors 3 and 4
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home, "DBUS_SESSION_BUS_ADDRESS=disabled:")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	back.Close()
	t.Cleanup(func() {
		b.tell("", "Browser.close", nil)
		if err := cmd.Wait(); err != nil && t.Context().Err() == nil {
			t.Logf("the browser: %v", err)
		}
		to.Close()
		from.Close()
		// Its helpers may live a moment longer than the browser, and write into their folder.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		for range 3000 {
			if err = os.RemoveAll(home); err == nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Error(err)
	})
	var target struct{ TargetID string }
	b.ask("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.ask("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Network", "Log", "Audits"} {
		b.ask(b.session, domain+".enable", nil, nil)
	}
	return b
}

// tell sends a command and returns its number.
func (b *browser) tell(session, method string, params any) int {
	b.id++
	content, err := json.Marshal(message{ID: b.id, Method: method, SessionID: session, Params: params})
	if err == nil {
		_, err = b.to.Write(append(content, 0))
	}
	if err != nil && method != "Browser.close" {
		b.t.Fatalf("%s: %v", method, err)
	}
	return b.id
}

// next reads one message, and keeps what a page must not do.
func (b *browser) next() (message, map[string]any) {
	content, err := b.from.ReadBytes(0)
	if err != nil {
		b.t.Fatalf("the browser is gone: %v", err)
	}
	var m message
	params := map[string]any{}
	m.Params = &params
	if err := json.Unmarshal(content[:len(content)-1], &m); err != nil {
		b.t.Fatal(err)
	}
	switch m.Method {
	case "Network.requestWillBeSent":
		request, _ := params["request"].(map[string]any)
		if url := fmt.Sprint(request["url"]); params["type"] != "Document" || !strings.HasPrefix(url, "file://"+b.dir) {
			b.seen = append(b.seen, "request "+url)
		}
	case "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded", "Audits.issueAdded", "Page.javascriptDialogOpening", "Page.windowOpen":
		b.seen = append(b.seen, fmt.Sprintf("%s %.300v", m.Method, params))
	}
	return m, params
}

// ask sends a command, and waits for its result.
func (b *browser) ask(session, method string, params, result any) {
	b.t.Helper()
	id := b.tell(session, method, params)
	for {
		m, _ := b.next()
		if m.ID != id {
			continue
		}
		if m.Error != nil {
			b.t.Fatalf("%s: %s", method, m.Error)
		}
		if result != nil {
			if err := json.Unmarshal(m.Result, result); err != nil {
				b.t.Fatal(err)
			}
		}
		return
	}
}

// page sends a command to the page.
func (b *browser) page(method string, params, result any) {
	b.t.Helper()
	b.ask(b.session, method, params, result)
}

// load shows a page, and waits until it is complete.
func (b *browser) load(content string) {
	b.t.Helper()
	name := filepath.Join(b.dir, "report.html")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.seen = nil
	id := b.tell(b.session, "Page.navigate", map[string]any{"url": "file://" + name})
	answered, loaded := false, false
	for !answered || !loaded {
		m, _ := b.next()
		answered = answered || m.ID == id
		loaded = loaded || m.Method == "Page.loadEventFired"
	}
}

// eval returns the value of an expression in the page.
func (b *browser) eval(expression string, value any) {
	b.t.Helper()
	var result struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.page("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &result)
	if result.ExceptionDetails != nil {
		b.t.Fatalf("%s", result.ExceptionDetails)
	}
	if err := json.Unmarshal(result.Result.Value, value); err != nil {
		b.t.Fatalf("%v: %s", err, result.Result.Value)
	}
}

// show sets the width of the window and the preferred colours.
func (b *browser) show(width int, scheme string) {
	b.t.Helper()
	b.page("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.page("Emulation.setEmulatedMedia", map[string]any{"media": "", "features": []any{map[string]string{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// picture returns the whole page as PNG.
func (b *browser) picture() []byte {
	b.t.Helper()
	var shot struct{ Data string }
	b.page("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &shot)
	content, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	return content
}
