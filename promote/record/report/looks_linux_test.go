package report_test

import (
	"bytes"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/promote/record/report"
)

// faint returns the texts of a page whose contrast with their background is below the 4.5 of WCAG.
const faint = `(() => {
	const channels = c => c.match(/[\d.]+/g).map(Number);
	const part = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
	const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
	const behind = e => {
		for (; e; e = e.parentElement) {
			const c = channels(getComputedStyle(e).backgroundColor);
			if (c.length < 4 || c[3] > 0) return c;
		}
		return [255, 255, 255];
	};
	const found = [];
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walk.nextNode()) {
		const e = walk.currentNode.parentElement;
		if (!walk.currentNode.data.trim() || ['title', 'STYLE'].includes(e.tagName)) continue;
		const number = e.classList.contains('number');
		const s = getComputedStyle(e);
		const front = channels(e instanceof SVGElement ? s.fill : s.color);
		const back = number ? channels(getComputedStyle(e.previousElementSibling).fill) : behind(e);
		const [a, b] = [light(front), light(back)].sort((x, y) => y - x);
		if ((a + 0.05) / (b + 0.05) < 4.5) found.push(walk.currentNode.data.trim().slice(0, 40) + ' ' + s.color + ' on ' + back);
	}
	return found;
})()`

// structure returns the elements and attributes of a page, without their values.
const structure = `(() => [...document.querySelectorAll('*')].map(e => e.tagName + ':' + [...e.attributes].map(a => a.name).sort().join(',')).join(' '))()`

// wrong returns what no report may have.
const wrong = `(() => {
	const found = [];
	if (window.hit !== undefined) found.push('a script ran');
	for (const e of document.querySelectorAll('*')) {
		if (/^(script|iframe|object|embed|img|link|base|form|input|audio|video|animate|set|foreignobject|use|image)$/i.test(e.tagName)) found.push(e.tagName);
		for (const a of e.attributes)
			if (/^on|^style$|^src|:/i.test(a.name) || a.name === 'href' && !a.value.startsWith('#')) found.push(e.tagName + ' ' + a.name + ' ' + a.value);
	}
	if (/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/.test(document.documentElement.textContent)) found.push('a hidden character');
	return found;
})()`

// TestPictures makes pictures of a report, wide and narrow, light and dark. AIRLOCK_TEST_PICTURES names a folder that keeps them.
func TestPictures(t *testing.T) {
	b := openBrowser(t)
	page := html(t, report.Of(sample(t, nil)))
	keep := os.Getenv("AIRLOCK_TEST_PICTURES")
	pictures := map[string][]byte{}
	widths := []int{360, 500, 800, 1280}
	if testing.Short() {
		widths = []int{360, 1280}
	}
	for _, width := range widths {
		for _, scheme := range []string{"light", "dark"} {
			name := fmt.Sprintf("%d-%s", width, scheme)
			b.show(width, scheme)
			b.load(page)
			var widest int
			b.eval("document.documentElement.scrollWidth", &widest)
			if widest > width {
				t.Errorf("%s: the page is %d pixels wide", name, widest)
			}
			var found []string
			if b.eval(faint, &found); len(found) > 0 {
				t.Errorf("%s: the contrast of these texts is too low: %s", name, strings.Join(found, "\n"))
			}
			if b.eval(wrong, &found); len(found) > 0 {
				t.Errorf("%s: %q", name, found)
			}
			pictures[name] = b.picture()
			if len(b.seen) > 0 {
				t.Errorf("%s: %q", name, b.seen)
			}
			image, err := png.DecodeConfig(bytes.NewReader(pictures[name]))
			if err != nil || image.Width != width || image.Height < 2*width {
				t.Errorf("%s: a picture of %d by %d (%v)", name, image.Width, image.Height, err)
			}
			if keep != "" {
				if err := os.WriteFile(filepath.Join(keep, name+".png"), pictures[name], 0o644); err != nil {
					t.Error(err)
				}
			}
		}
		if light, dark := fmt.Sprintf("%d-light", width), fmt.Sprintf("%d-dark", width); bytes.Equal(pictures[light], pictures[dark]) {
			t.Errorf("%s and %s are equal", light, dark)
		}
	}
}

// paper is the width of a printed page in pixels: A4 without the margins of Chromium.
const paper = 718

// TestPrints checks that everything is on paper and can be read there, also what is folded on a screen, and from a dark screen. Chromium
// itself prints every page as a light one, other browsers need not.
func TestPrints(t *testing.T) {
	b := openBrowser(t)
	b.show(paper, "dark")
	b.load(html(t, report.Of(sample(t, nil))))
	b.page("Emulation.setEmulatedMedia", map[string]any{"media": "print", "features": []map[string]string{{"name": "prefers-color-scheme", "value": "dark"}}}, nil)
	var folded int
	b.eval("document.querySelectorAll('details').forEach(d => d.open = false), [...document.querySelectorAll('.diff')].filter(e => !e.checkVisibility({contentVisibilityAuto: true})).length", &folded)
	if folded > 0 {
		t.Errorf("%d changes are not on paper", folded)
	}
	var found []string
	if b.eval(faint, &found); len(found) > 0 {
		t.Errorf("the contrast of these texts is too low on paper: %s", strings.Join(found, "\n"))
	}
	if b.eval(cut, &found); len(found) > 0 {
		t.Errorf("these parts are wider than the paper: %s", strings.Join(found, "\n"))
	}
	if keep := os.Getenv("AIRLOCK_TEST_PICTURES"); keep != "" {
		if err := os.WriteFile(filepath.Join(keep, "paper.png"), b.picture(), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// cut returns the parts of a page whose content is wider than they are, or that end outside of the page: paper cannot be scrolled.
const cut = `(() => [...document.querySelectorAll('body, body *')].filter(e => e.clientWidth > 0 && !e.closest('svg') && getComputedStyle(e).overflowX !== 'visible' && e.scrollWidth > e.clientWidth + 1
	|| e.getBoundingClientRect().right > innerWidth + 1).map(e => e.tagName + ' ' + e.className + ' ' + e.textContent.trim().slice(0, 40)))()`

// hostile returns 500 texts that try to run code, to leave their place, to load something, or to deceive a reader. A short run has each attempt
// once, with several in a text, because a browser takes 0.2 s of processor time for a page.
func hostile() []string {
	payloads := []string{
		"<script>window.hit=1</script>", "</title><script>window.hit=1</script>", "</style><script>window.hit=1</script>", "<img src=x onerror=window.hit=1>", "<svg onload=window.hit=1>",
		"<svg><script>window.hit=1</script></svg>", "<svg><animate onbegin=window.hit=1 attributeName=x dur=1s>", "<math><mtext></mtext><script>window.hit=1</script></math>", "<iframe srcdoc='<script>parent.hit=1</script>'>",
		"<a href=\"javascript:window.hit=1\">x</a>", "javascript:window.hit=1", "JaVaScRiPt&#58;window.hit=1", "data:text/html,<script>parent.hit=1</script>", "&lt;script&gt;window.hit=1&lt;/script&gt;", "&#60;script&#62;window.hit=1",
		"\" onmouseover=\"window.hit=1", "' onfocus='window.hit=1' autofocus='", "` onerror=window.hit=1 `", "\"><b>out</b>", "'><b>out</b>", "--><b>out</b><!--", "]]><b>out</b>", "<!--", "<![CDATA[", "</pre><b>out</b>", "</span></pre></details></article><h1>out</h1>",
		"</svg><b>out</b>", "<title>x</title>", "</text><script>window.hit=1</script>", "<style>@import 'http://evil.invalid/x.css';</style>", "</style><style>*{background:url(http://evil.invalid/x)}</style>", "background:url(http://evil.invalid/x)",
		"expression(window.hit=1)", "<link rel=stylesheet href=http://evil.invalid/x.css>", "<meta http-equiv=refresh content='0;url=http://evil.invalid/'>", "<base href=http://evil.invalid/>", "<form action=http://evil.invalid/><input name=x autofocus onfocus=window.hit=1>",
		"<object data=http://evil.invalid/x>", "<embed src=http://evil.invalid/x>", "<video><source onerror=window.hit=1></video>", "<details open ontoggle=window.hit=1>", "<template><script>window.hit=1</script></template>", "<noscript><img src=x onerror=window.hit=1></noscript>",
		"{{.Style}}", "{{printf \"%s\" .}}", "${window.hit=1}", "`${window.hit=1}`", "\u202e<gnp.exe", "a\u2066b\u2069", "\u200b\u200d\ufeff", "\x00<script>window.hit=1</script>", "\xff\xfe<script>window.hit=1</script>", "\xc0\xbcscript\xc0\xbewindow.hit=1",
		"+ADw-script+AD4-window.hit=1", "\x1b]0;out\a\x1b[31m", "a\tb\rc", "%3Cscript%3Ewindow.hit=1", "\u2028window.hit=1//", "\ufe64script\ufe65", "\u0085", strings.Repeat("<b>", 300), strings.Repeat("A", 9000), strings.Repeat("&", 2000), strings.Repeat("\u0301", 500),
	}
	wraps := []string{"%s", "\"%s", "'%s", "x %s y", ">%s", "\\%s", "-->%s", "%%%s"}
	var all []string
	for i, wrap := range wraps {
		together := ""
		for j, payload := range payloads {
			text := fmt.Sprintf(wrap, payload)
			switch most := 200; { // longer texts stay alone
			case !testing.Short() || j%len(wraps) == i && len(text) > most:
				all = append(all, text)
			case j%len(wraps) == i && len(together)+len(text) > most:
				all, together = append(all, together), text
			case j%len(wraps) == i:
				together += text
			}
		}
		if together != "" {
			all = append(all, together)
		}
	}
	return all[:min(len(all), 500)]
}

// with returns a record in which every field has a text.
func with(t *testing.T, text string) record.Run {
	return sample(t, func(m *record.Manifest, files map[string][]byte) {
		oneLine := strings.NewReplacer("\n", " ", "\r", " ").Replace(text)
		m.Argv, m.Agent, m.Branch, m.Backend, m.Network, m.Program = []string{"tool", text}, text, "refs/heads/"+text, text, text, text
		m.Status, m.Signal, m.Isolation.Runtime = record.Status(text), record.Signal(text), text
		m.Reasons, m.Weaker, m.LimitsHit, m.Policy, m.Environment, m.Visibility = []string{text}, []string{text}, []string{text}, []string{text}, []string{text}, []string{text}
		m.Held = []record.Hold{{Reason: text, Message: text, Paths: []string{text}}}
		m.Outer = record.Range{Before: gitops.OID(text), After: gitops.OID(text)}
		m.Absent[record.TerminalName] = text
		program, denied := ran(1, 2, 0, 60_000, "tool", text), ran(2, 3, 0, -1, "go", "test", text)
		program.Exe, program.Disputed, denied.Deny = text, true, pointer(text)
		test := ran(3, 4, 1, 90_000, "go", "test", text)
		files[record.ExecName] = lines(t, []record.Exec{program, denied, test})
		files[record.EgressName] = lines(t, []record.Egress{
			{Kind: control.KindFlow, Time: at(4), Name: text, Verdict: control.VerdictFailed, Reason: text}, {Kind: control.KindRefusal, Time: at(4), Name: text, Reason: text},
		})
		files[record.EventsName] = lines(t, []record.Event{{Time: at(4), Level: record.Level(text), Kind: record.EventKind(text), Text: text, Data: map[string]string{"commit": text}}})
		files[record.CommitsName] = []byte(fmt.Sprintf("%s\t%s\t%s\t-\t%s\n", "landed", id(1), id(101), oneLine))
		change := fmt.Sprintf("diff --git a/x b/x\n--- a/x\n+++ %s\n@@ -1 +1 @@ %s\n-%s\n+%s\n", fmt.Sprintf("%q", "b/"+strings.ToValidUTF8(text, "?")), oneLine, oneLine, oneLine)
		files[record.ChangesName] = []byte(mail(id(101), 2, "x", text+"\nthe end", change))
		files[record.StdoutName] = []byte(oneLine + "\n")
	})
}

// TestHostileText checks in a browser that no text leaves its place, runs, loads anything, or hides a character, in any field.
func TestHostileText(t *testing.T) {
	b := openBrowser(t)
	b.load("<!DOCTYPE html><img src=x onerror='window.hit=1'><script>window.hit=1</script>\u202e<img src=http://evil.invalid/x>")
	var found []string
	if b.eval(wrong, &found); len(found) < 5 || len(b.seen) < 2 {
		t.Fatalf("an open page is not noticed: %q, %q", found, b.seen)
	}
	b.load(html(t, report.Of(with(t, "plain"))))
	var want string
	b.eval(structure, &want)
	for _, text := range hostile() {
		b.load(html(t, report.Of(with(t, text))))
		var got struct {
			Structure string
			Wrong     []string
		}
		b.eval("({structure: "+structure+", wrong: "+wrong+"})", &got)
		if got.Structure != want {
			same := 0
			for same < min(len(got.Structure), len(want)) && got.Structure[same] == want[same] {
				same++
			}
			t.Errorf("%.200q changes the page: ...%.300s, want ...%.300s", text, got.Structure[max(0, same-100):], want[max(0, same-100):])
		}
		if len(got.Wrong)+len(b.seen) > 0 {
			t.Errorf("%.200q: %q, %q", text, got.Wrong, b.seen)
		}
		if t.Failed() {
			break
		}
	}
}
