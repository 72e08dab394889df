package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page and its style
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/words"
)

// MaxHTML is the maximum size of a report in bytes.
const MaxHTML = 400_000

//go:embed page/report.html
var page string

//go:embed page/report.css
var style string

// tmpl escapes every value for its place. The page has no script, and its policy allows none.
var tmpl = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("report").Funcs(template.FuncMap{
		"area": area, "anchor": anchor, "bytes": words.Bytes, "changes": changes, "curve": curve,
		"lines": joined, "span": span,
	}).Parse(page))
})

// styleHash is the source of the style in the policy of the page.
var styleHash = sync.OnceValue(func() string {
	sum := sha256.Sum256([]byte(style))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
})

// HTML returns the view as one file, which loads nothing, has no scripts, and has at most [MaxHTML] bytes. A view that needs more
// is made smaller.
func (v View) HTML() ([]byte, error) { return v.fitting(View.draw) }

// fitting returns the first form of the view, from the largest to smaller ones, that has at most [MaxHTML] bytes.
func (v View) fitting(form func(View) ([]byte, error)) ([]byte, error) {
	for scale := 0; ; scale++ {
		content, err := form(v.scaled(scale))
		if err != nil || len(content) <= MaxHTML {
			return content, err
		}
	}
}

func (v View) draw() ([]byte, error) {
	var out bytes.Buffer
	err := tmpl().Execute(&out, struct {
		View
		Style     template.CSS
		StyleHash string
	}{v, template.CSS(style), styleHash()}) // #nosec G203 -- a constant
	if err != nil {
		return nil, fmt.Errorf("draw the report: %w", err)
	}
	return out.Bytes(), nil
}

// Open reports whether the changes of a commit are unfolded.
func (c Commit) Open() bool { return c.Number <= 3 && c.Added+c.Removed <= 60 }

// Middle returns the middle of a span.
func (m Mark) Middle() float64 { return rounded(m.At + m.Length/2) }

// code returns a line of a file for a page, with its tabs.
func code(t Text) string {
	cells := strings.Split(t.Raw(), "\t")
	for i, cell := range cells {
		cells[i] = Text(cell).String()
	}
	return strings.Join(cells, "\t")
}

// joined returns lines for a place that keeps line breaks.
func joined(lines []Text) string {
	shown := make([]string, len(lines))
	for i, line := range lines {
		shown[i] = code(line)
	}
	return strings.Join(shown, "\n")
}

// Block is adjacent lines of one kind.
type Block struct {
	Side string // add, del, at, or empty for context
	Text string // each line with the sign of its kind
}

// Blocks returns the lines of a file for a page. A page has one element for each block, since it may have thousands of lines.
func (f File) Blocks() (blocks []Block) {
	for i := 0; i < len(f.Lines); {
		kind := f.Lines[i].Kind
		var lines []string
		for ; i < len(f.Lines) && f.Lines[i].Kind == kind; i++ {
			lines = append(lines, strings.TrimPrefix(kind, "@")+code(f.Lines[i].Text))
		}
		blocks = append(blocks, Block{map[string]string{"+": "add", "-": "del", "@": "at"}[kind], strings.Join(lines, "\n")})
	}
	return blocks
}

// shortRun is the length of a run below which times of the day have tenths of seconds.
const shortRun = 10 * time.Second

// clockForm is the form of times of the day in a run of some length.
func clockForm(length time.Duration) string {
	if length < shortRun {
		return time.TimeOnly + ".0"
	}
	return time.TimeOnly
}

// clock returns a time of the day in a run of some length, and nothing for a time that is not known.
func clock(t time.Time, length time.Duration) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(clockForm(length))
}

// clock formats the time of something in the run.
func (m *material) clock(t time.Time) string { return clock(t, m.length()) }

// Clock formats the time of something in the run.
func (v View) Clock(t time.Time) string { return clock(t, v.Run.Ended.Sub(v.Run.Started)) }

func span(from, to time.Time) string {
	from, to = from.UTC(), to.UTC()
	form := "15:04"
	if length := to.Sub(from); length < 10*time.Minute {
		form = clockForm(length)
	}
	end := to.Format(form)
	if to.YearDay() != from.YearDay() || to.Year() != from.Year() {
		end = to.Format("2 January " + form)
	}
	return fmt.Sprintf("%s to %s UTC", from.Format("2 January 2006, "+form), end)
}

func anchor(at float64) string {
	switch {
	case at < 4:
		return "start"
	case at > 96:
		return "end"
	}
	return "middle"
}

func curve(points [][2]float64) string {
	var b strings.Builder
	for i, p := range points {
		fmt.Fprintf(&b, "%c%.2f %.2f", "ML"[min(i, 1)], p[0], 96-0.92*p[1])
	}
	return b.String()
}

func area(points [][2]float64) string {
	if len(points) == 0 {
		return ""
	}
	return fmt.Sprintf("%sL%.2f 100L%.2f 100Z", curve(points), points[len(points)-1][0], points[0][0])
}

func changes(added, removed, files int) string {
	return fmt.Sprintf("%s, +%d −%d", words.Count(files, "file"), added, removed)
}
