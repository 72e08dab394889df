package invisible

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
)

// spellings are usual texts with characters that have no glyph of their own.
var spellings = map[string][]string{
	"emoji with a variant": {"❤\ufe0f", "©\ufe0e", "™\ufe0f", "‼\ufe0f", "⁉\ufe0f", "〰\ufe0f", "〽\ufe0f", "ℹ\ufe0f", "Ⓜ\ufe0f", "㊗\ufe0f", "🈂\ufe0f", "↩\ufe0e", "▶\ufe0f", "◾\ufe0f", "🅰\ufe0f", "🕵🏻\ufe0f", "①\ufe0f", "\ue0b0\ufe0e"},
	"keycaps":              {"#\ufe0f\u20e3", "*\ufe0f\u20e3", "0\ufe0f\u20e31\ufe0f\u20e39\ufe0f\u20e3", "7\u20e3", "7\u20e3\ufe0f", "4\ufe0e\u20e3"},
	"flags":                {"🇩🇪🇫🇷", flag("gbeng"), flag("gbsct") + flag("gbwls"), flag("usca"), "🏴\u200d☠\ufe0f", "🏳\ufe0f\u200d🌈", "🏳\ufe0f\u200d⚧\ufe0f", "🏴"},
	"joined emoji":         {"👨\u200d👩\u200d👧\u200d👦", "👁\ufe0f\u200d🗨\ufe0f", "🧑🏽\u200d🚀", "🤦🏼\u200d♂\ufe0f", "🧔\u200d♀", "❤\ufe0f\u200d🔥", "👩🏿\u200d❤\ufe0f\u200d💋\u200d👩🏻", "🧎\u200d♂\ufe0f\u200d➡\ufe0f", "🐻\u200d❄\ufe0f", "⛓\ufe0f\u200d💥"},
	"remains of an emoji":  {" \ufe0f⚠\ufe0f careful", "[start](#\ufe0f-getting-started)", "[start](#getting-started-\ufe0f)"},
	"Indic scripts":        {"क्\u200dष", "क्\u200cष", "র\u200d্য", "ක්\u200dෂ", "ന്\u200d", "ಕ್\u200c "},
	"Arabic script":        {"می\u200cخواهم", "خانه\u200cها", "ه\u200d ", "abc \u200fשלום", "שלום\u200e (a)", "\u061cعربي"},
	"Mongolian":            {"ᠰᠠᠢᠨ\u180b ", "ᠠ\u180c\u200d", "ᠴᠠᠭ\u180eᠠ", "ᠭ\u180d\u200cᠠ", "ᠨ\u180b\u180eᠠ", "\u1820\u180f"},
	"ideographs":           {"葛\U000e0100城", "辻\U000e0101", "邉\U000e010f邉\U000e0110", "逸\ufe00", "、\ufe00", "，\ufe01"},
	"other scripts":        {"သည်\u200bများ", "ภาษา\u200bไทย", "ខ្មែរ\u200b", "ꡕ\ufe00", "က\ufe00", "∩\ufe00", "𐫅\ufe00"},
}

// flag is the flag of a region.
func flag(code string) string {
	return string(blackFlag) + tags(code) + "\U000e007f"
}

// tags spells a text in invisible letters.
func tags(text string) string {
	return strings.Map(func(r rune) rune { return 0xe0000 + r }, text)
}

func TestSpellings(t *testing.T) {
	for kind, texts := range spellings {
		for _, text := range texts {
			for _, all := range []string{text, "see " + text + "\n", text + text, "(" + text + ")", "ü" + text + "1"} {
				if _, char := Find([]byte(all), true); char != "" {
					t.Errorf("%s: %+q has %s", kind, all, char)
				}
			}
		}
	}
	for _, table := range unicode.So.R32 { // all pictures of emoji
		for r := max(rune(table.Lo), 0x1f000); r <= rune(table.Hi); r += rune(table.Stride) {
			text := string(r) + "\ufe0f\u200d" + string(r) + "\ufe0e, " + string(r)
			if _, char := Find([]byte(text), true); char != "" {
				t.Errorf("%+q has %s", text, char)
			}
		}
	}
}

// TestHiddenTexts uses runs of characters that spell a text for a program or a model, and that nobody sees.
func TestHiddenTexts(t *testing.T) {
	selectors := strings.Map(func(r rune) rune { return 0xe0100 + r }, "touch pwn")
	for _, text := range []string{
		"'\ufe0e\ufe0f\ufe0e'", "a\ufe0f", "1\ufe0f", "README\ufe0e", "-\ufe0f-\ufe0f-", " \ufe0e⚠", "❤\ufe0f\ufe0f", "❤\ufe0f\ufe0e❤", "\U0001f600" + selectors, "漢" + selectors, "漢\U000e0100\U000e0101", "é\U000e0100", "ω\ufe00", "и\ufe0f",
		"漢\u180b\u180c\u180d\u180b", "ᠠ\u180b\u180c", "ᠠ\u180e", "ᠠ\u180e\u180eᠠ", "\u3164\ufe0f", "\u2800\ufe0f", "\u3000\ufe0f",
		string(blackFlag) + tags("touch pwn") + "\U000e007f", string(blackFlag) + tags("gbeng"), string(blackFlag) + tags("GBENG") + "\U000e007f", flag("gbeng") + tags("a"), flag("gbeng") + "\ufe0f\ufe0f", "a" + tags("gbeng"),
		"❤\u200b\ufe0f\u200c\ufe0f\u200d", "❤\u034f\u200b\u034f\u200c\u034f", "א\u061c\u200e\u061c\u200f\u061cא", "a\u061c\u200e\u061cb", "a\u200cb",
	} {
		if line, char := Find([]byte("x\n"+text+"\n"), false); char == "" || line != 1 {
			t.Errorf("%+q: line %d has %q", text, line, char)
		}
	}
}

// TestRunsAreFound puts invisible characters between visible ones in random order. A spelling has at most three in a row: a selector of the one before,
// and a joiner for each side.
func TestRunsAreFound(t *testing.T) {
	visible := []string{"a", "1", "#", "-", "❤", "漢", "ᠠ", "א", "ع", "क", "й", "\u20e3", "🏽", "\ue0b0"}
	unseen := []string{"\ufe00", "\ufe0e", "\ufe0f", "\u180b", "\u180e", "\U000e0100", "\U000e0061", "\U000e007f", "\u200b", "\u200c", "\u200d", "\u034f", "\u200e", "\u200f", "\u061c", "\u2060", "\u3164", "\u00ad"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		text := visible[random.IntN(len(visible))]
		for range 4 + random.IntN(4) {
			text += unseen[random.IntN(len(unseen))]
		}
		text += visible[random.IntN(len(visible))]
		if _, char := Find([]byte(text), true); char == "" {
			t.Fatalf("%+q is not found", text)
		}
	}
}
