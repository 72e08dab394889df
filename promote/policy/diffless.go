package policy

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// diffless reports new lines of attributes that have git say of changed text only that it differs.
func diffless(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	a, err := in.attributeLines(ctx, c, r)
	hides := func(s saying) bool { return !s.back && s.state == "-diff" }
	through := a.macros.leading(hides)
	hiding := func(state string) bool {
		s := saying{state, false}
		return hides(s) || through[s.use()]
	}
	for _, l := range a.added() {
		if l.pattern != "" && !binaryNames[strings.ToLower(path.Ext(l.pattern))] && slices.ContainsFunc(l.states, hiding) {
			r.at(c.Path, "line %d has git show no diff of %s", l.number, l.pattern)
		}
	}
	return err
}

// binaryNames are the ends of the names of files that nobody expects to read.
var binaryNames = func() map[string]bool {
	names := map[string]bool{}
	for end := range strings.FieldsSeq(`
		7z a aac apk avi avif bin bmp br bz2 class cur dat db deb dex dll doc docx dylib eot exe flac gif gz heic ico icns jar jks jpeg jpg
		keystore lib m4a m4v mkv mov mp3 mp4 mpeg mpg npy npz o odp ods odt ogg onnx otf parquet pb pdf pkl png ppt pptx psd pt pyc
		rar rpm safetensors so sqlite sqlite3 tar tflite tgz tif tiff ttc ttf wasm wav webm webp whl wmv woff woff2 xls xlsx xz zip zst`) {
		names["."+end] = true
	}
	return names
}()
