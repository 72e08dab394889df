package policy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy/attribute"
	"github.com/git-airlock/git-airlock/promote/policy/filekind"
	"github.com/git-airlock/git-airlock/promote/policy/invisible"
	"github.com/git-airlock/git-airlock/promote/policy/pathname"
	"github.com/git-airlock/git-airlock/words"
)

// hiddenText finds content that people cannot see: characters that change the direction of text, are invisible or make a
// terminal hide others, and attributes that make git show no diff or no conflict.
func hiddenText(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	if c.New.Mode != 0 && c.Old.Mode == 0 {
		if _, char := invisible.Find([]byte(c.Path), true); char != "" {
			r.at(c.Path, "the name has %s", char)
		}
	}
	if c.New.Mode != 0 && pathname.Means(pathname.Base(c.Path), ".gitattributes") {
		if err := hiddenDiffs(ctx, in, c, r); err != nil {
			return err
		}
	}
	if pathname.Means(c.Path, ".gitattributes") {
		if err := hiddenByMacros(ctx, in, c, r); err != nil {
			return err
		}
	}
	if c.New.Mode != 0 && pathname.Means(c.Path, ".mailmap") {
		r.at(c.Path, "git shows other names and addresses because of it")
	}
	f, err := in.read(ctx, c)
	if err != nil || f.binary || f.dense {
		return err
	}
	if f.hides {
		r.at(c.Path, "is a text with a NUL byte, so that git shows no diff of it")
	}
	identified := ""
	for _, added := range f.runs {
		text := added.text
		if added.line == 1 {
			text = bytes.TrimPrefix(text, filekind.ByteOrderMark)
		}
		if line, char := invisible.Find(text, false); char != "" {
			r.at(c.Path, "line %d has %s", added.line+line, char)
			break
		}
		if line, found := findIdentified(text); found != "" && identified == "" {
			identified = fmt.Sprintf("line %d has %s between $Id: and $, which git replaces on the disk where the attribute ident is set", added.line+line, gitops.Text(words.Shorten(found, maxQuoted)))
		}
	}
	if identified != "" {
		r.at(c.Path, "%s", identified)
	}
	in.unsearched(f, r)
	return nil
}

// plainEncodings are the encodings in which the bytes of a message show its hidden characters.
var plainEncodings = []string{"", "utf-8", "utf8", "ascii", "us-ascii"}

// latinEncodings have one character for each byte. The value reports whether most bytes from 0x80 to 0x9f are letters
// instead of control characters, as on Windows.
var latinEncodings = map[string]bool{"iso-8859-1": false, "iso8859-1": false, "latin1": false, "latin-1": false, "iso-8859-15": false, "windows-1252": true, "cp1252": true}

// maxQuoted bounds the characters of a text in a flag. The agent chooses them.
const maxQuoted = 60

// hiddenMessage finds such characters in the message.
func hiddenMessage(_ context.Context, in *inspection, r *report) error {
	encoding := strings.ToLower(in.Encoding)
	windows, latin := latinEncodings[encoding]
	if !latin && !slices.Contains(plainEncodings, encoding) {
		r.at("", "the message is encoded in %s, and may contain characters that were not checked", gitops.Text(words.Shorten(in.Encoding, maxQuoted)))
	}
	line, char := invisible.Find(in.Message, true)
	if char == "" && latin { // git shows the bytes if it cannot convert them, so both forms are checked
		line, char = invisible.Find(fromLatin(in.Message, windows), true)
	}
	if char != "" {
		r.at("", "line %d of the message has %s", line+1, char)
	}
	return nil
}

// fromLatin converts bytes to characters one by one. The characters in which the Latin encodings differ are visible
// in all of them, so one letter stands for all letters of Windows. Bytes without a letter on Windows can become
// control characters.
func fromLatin(text []byte, windows bool) []byte {
	var out []byte
	for _, b := range text {
		r := rune(b)
		if windows && b >= 0x80 && b <= 0x9f && strings.IndexByte("\x81\x8d\x8f\x90\x9d", b) < 0 {
			r = '\u20ac'
		}
		out = utf8.AppendRune(out, r)
	}
	return out
}

// hiddenDiffs reports new attribute lines that make git show no diff of changed text, other bytes than those on the disk, or no conflicts.
func hiddenDiffs(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	a, err := in.attributeLines(ctx, c, r)
	m, errMacros := in.hidingMacros(ctx, in.tree)
	joins := a.setting("merge=union") // git has no other driver that merges without conflicts
	for _, l := range a.added() {
		if joins(l) {
			r.at(c.Path, "line %d makes git merge %s without conflicts: it keeps the lines of both sides (merge=union)", l.Number, namedFiles(l))
		}
		if m.mayHide(l) {
			r.at(c.Path, "line %d makes git show no diff of %s", l.Number, l.Pattern)
		}
		for _, state := range l.States {
			if name, value := (attribute.Effect{State: state}).Attribute(); name == encodingAttribute && value != "" && !filekind.ASCIICharset(value) {
				r.at(c.Path, "line %d: on the disk, files of %s have other bytes than those that git shows (%s)", l.Number, namedFiles(l), state)
			}
		}
	}
	endings(&a, c.Path, r)
	return errors.Join(err, errMacros)
}

// hiddenByMacros reports attribute lines without a change that make git show no diff, because the commit defines, redefines or removes a macro at the
// top. The lines can be in any attribute file.
func hiddenByMacros(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	before, err := in.hidingMacros(ctx, in.parent)
	if err != nil {
		return err
	}
	after, err := in.hidingMacros(ctx, in.tree)
	if err != nil || after.same(before) {
		return err
	}
	newly := func(l attribute.Line) (bool, error) {
		if !after.mayHide(l) {
			return false, nil
		}
		err := in.meter.spend(entryCost * (before.states + after.states + 2*int64(len(l.States))))
		return err == nil && (!before.mayHide(l) || after.hides(l) && !before.hides(l)), err
	}
	for _, l := range in.userLines() {
		if found, err := newly(l); err != nil {
			return err
		} else if found {
			r.at(c.Path, "by a macro, your own attributes make git show no diff of %s", l.Pattern)
		}
	}
	var paths []string
	if err := in.below(ctx, []string{""}, "", in.Tree, func(path string) {
		if pathname.Means(pathname.Base(path), ".gitattributes") {
			paths = append(paths, path)
		}
	}); err != nil {
		return err
	}
	for _, path := range paths {
		kept, err := in.keptLines(ctx, path)
		if err != nil {
			return err
		}
		for _, l := range kept {
			if found, err := newly(l); err != nil {
				return err
			} else if found {
				r.at(c.Path, "by a macro, line %d of %s makes git show no diff of %s", l.Number, path, l.Pattern)
			}
		}
	}
	return nil
}

// endings reports attribute lines by which shell scripts get a carriage return at the end of each line on the disk, which no diff shows. For a
// shell it belongs to the last word, so that it undoes the backslash of a continued line, and makes another command of "exit". Lines in another
// order, or of another file, are not compared.
func endings(a *attributeChange, path string, r *report) {
	adds := a.setting("eol=crlf")
	returns := func(l attribute.Line) bool { return scripts(l.Pattern) && adds(l) }
	keepsOut := func(l attribute.Line) bool {
		return scripts(l.Pattern) && slices.ContainsFunc(l.States, func(state string) bool { return slices.Contains([]string{"eol=lf", "-text", "binary"}, state) })
	}
	for _, l := range a.added() {
		if returns(l) {
			r.at(path, "line %d: on the disk, the lines of %s end with a carriage return, which shells take for a part of the command", l.Number, namedFiles(l))
		}
	}
	if !slices.ContainsFunc(a.after, returns) {
		return
	}
	kept := map[string]bool{} // by pattern
	for _, l := range a.after {
		kept[l.Pattern] = kept[l.Pattern] || keepsOut(l)
	}
	for _, l := range a.before {
		if !kept[l.Pattern] && keepsOut(l) {
			r.at(path, "line %d, which keeps the carriage return out of %s, is removed", l.Number, namedFiles(l))
		}
	}
}

// namedFiles returns the pattern of a line, or the macro that it defines, for a flag.
func namedFiles(l attribute.Line) string {
	return words.Shorten(cmp.Or(l.Pattern, attribute.MacroMark+l.Macro), maxQuoted)
}

// scripts reports whether a pattern may match shell scripts: its files have no certain extension, or one of theirs. The pattern of a macro is
// empty and may stand for all files.
func scripts(pattern string) bool {
	name := strings.TrimPrefix(pattern[strings.LastIndex(pattern, "/")+1:], ".")
	dot := strings.LastIndex(name, ".")
	extension := name[dot+1:]
	return dot < 0 || strings.ContainsAny(extension, `*?[]\`) || slices.Contains([]string{"sh", "bash", "dash", "ksh", "zsh", "bats", "mk"}, strings.ToLower(extension))
}

// findIdentified returns the first text between $Id: and $ that git replaces on the disk where the attribute ident is set, and the number of
// lines before it. It returns neither the name of an object, which git itself writes there, nor a text that git keeps: one with spaces
// counts as written by another version control system. Git's two implementations (convert.c, ident_to_worktree and is_foreign_ident) differ in
// which spaces count.
func findIdentified(text []byte) (line int, found string) {
	mark, space := []byte("$Id:"), []byte(" ")
	for at := 0; ; {
		next := bytes.Index(text[at:], mark)
		if next < 0 {
			return 0, ""
		}
		at += next + len(mark)
		end := bytes.IndexAny(text[at:], "$\n")
		if end <= 0 || text[at+end] == '\n' {
			continue
		}
		between := text[at : at+end]
		kept := between[0] == ' ' && bytes.Contains(bytes.TrimSuffix(between[1:], space), space)
		id := bytes.TrimSuffix(bytes.TrimPrefix(between, space), space)
		if !kept && len(bytes.Trim(id, "0123456789abcdef")) > 0 {
			return bytes.Count(text[:at], []byte("\n")), string(between)
		}
	}
}
