// Package filekind distinguishes text from other content, by the name of a file and by its bytes.
package filekind

import (
	"bytes"
	"path"
	"strings"
	"sync"
	"unicode/utf8"
)

// ByteOrderMark at the beginning of a text only identifies its encoding as UTF-8.
var ByteOrderMark = []byte("\ufeff")

// binaryHead is the number of bytes in which git looks for a NUL.
const binaryHead = 8000

// Binary reports whether git would treat content as binary: there is a NUL near its beginning.
func Binary(content []byte) bool {
	return bytes.IndexByte(content[:min(len(content), binaryHead)], 0) >= 0
}

// textShare is the number of bytes among which a text has at most one control character. Programs and compressed data have more, or are not UTF-8.
const textShare = 32

// Text reports whether a content is text, or was one before somebody added a few NULs. An interpreter may ignore them.
func Text(content []byte) bool {
	if !Binary(content) || bytes.HasPrefix(content, []byte("#!")) {
		return true
	}
	head := content[:min(len(content), binaryHead)]
	controls, invalid := 0, 0
	for i := 0; i < len(head); {
		r, n := utf8.DecodeRune(head[i:])
		if r < ' ' && !strings.ContainsRune("\t\n\r\f\v\b\x1b", r) {
			controls++
		}
		if r == utf8.RuneError && n == 1 {
			invalid++
		}
		i += n
	}
	return controls*textShare <= len(head) && invalid*4 <= len(head)
}

// WithoutNULs removes the NULs from a content. Shells do that, and it makes the ASCII characters of UTF-16 searchable.
func WithoutNULs(content []byte) []byte {
	if bytes.IndexByte(content, 0) < 0 {
		return content
	}
	return bytes.ReplaceAll(content, []byte{0}, nil)
}

// TextName reports whether a file of that name is expected to be text.
func TextName(name string) bool { return textNames()[extension(name)] }

// extensions returns a function that makes a set of the extensions in a list when it is first called.
func extensions(list string) func() map[string]bool {
	return sync.OnceValue(func() map[string]bool {
		names := map[string]bool{}
		for end := range strings.FieldsSeq(list) {
			names["."+end] = true
		}
		return names
	})
}

func extension(name string) string { return strings.ToLower(path.Ext(name)) }

// BinaryName reports whether a file of that name is not expected to be text.
func BinaryName(name string) bool { return binaryNames()[extension(name)] }

// textNames are the extensions of texts that people review, most of them programs.
var textNames = extensions(`
	awk bash bat c cc cfg cjs clj cmake cmd conf cpp cs css csv cts cxx dart el erl ex exs fish go gradle groovy h hh hpp hs htm html ini java jl js json
	jsx kt lisp lua m md mjs mk ml mm mts nix php pl pm properties proto ps1 py r rake rb rs rst sass scala scss sh sql svelte swift tcl tex tf toml ts
	tsx txt vim vue xml yaml yml zig zsh`)

// binaryNames are the extensions of files that people do not read.
var binaryNames = extensions(`
	7z a aac apk avi avif bin bmp br bz2 class cur dat db deb dex dll doc docx dylib eot exe flac gif gz heic ico icns jar jks jpeg jpg
	keystore lib m4a m4v mkv mov mp3 mp4 mpeg mpg npy npz o odp ods odt ogg onnx otf parquet pb pdf pkl png ppt pptx psd pt pyc
	rar rpm safetensors so sqlite sqlite3 tar tflite tgz tif tiff ttc ttf wasm wav webm webp whl wmv woff woff2 xls xlsx xz zip zst`)
