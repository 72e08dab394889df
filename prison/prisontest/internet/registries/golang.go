package registries

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"sync"
)

const (
	goModule  = "standin.test/m"
	goVersion = "v1.0.0"
	goMod     = "module " + goModule + "\n"
	sumHost   = "sum.golang.org"
)

// golang returns the answers of Go's proxy, with the module standin.test/m, and of a checksum database with one record. As in reality,
// the proxy does not serve the database.
func golang() map[string]files {
	prefix := goModule + "@" + goVersion + "/"
	sources := []file{{prefix + "go.mod", goMod}, {prefix + "m.go", "package m\n\nconst Name = \"standin\"\n"}}
	record := fmt.Sprintf("%s %s %s\n%s %s/go.mod %s\n", goModule, goVersion, sum1(sources...), goModule, goVersion, sum1(file{"go.mod", goMod}))
	leaf := sha256.Sum256([]byte("\x00" + record))
	tree := signed(fmt.Sprintf("go.sum database tree\n1\n%s\n", base64.StdEncoding.EncodeToString(leaf[:])))
	versions := "/" + goModule + "/@v/"
	info := fmt.Sprintf(`{"Version":"%s","Time":"2023-11-14T22:13:20Z"}`, goVersion)
	return map[string]files{
		"proxy.golang.org": {
			versions + "list": goVersion + "\n", versions + goVersion + ".info": info, "/" + goModule + "/@latest": info,
			versions + goVersion + ".mod": goMod, versions + goVersion + ".zip": zipped(sources...),
		},
		sumHost: {
			"/latest": tree, "/lookup/" + goModule + "@" + goVersion: "0\n" + record + "\n" + tree,
			"/tile/8/0/000.p/1": string(leaf[:]),
		},
	}
}

// sum1 returns the digest of files in the form of go.sum. The files must be sorted by name.
func sum1(all ...file) string {
	list := ""
	for _, f := range all {
		list += fmt.Sprintf("%s  %s\n", sum256(f.content), f.name)
	}
	sum := sha256.Sum256([]byte(list))
	return "h1:" + base64.StdEncoding.EncodeToString(sum[:])
}

// sumKey returns the key that signs the checksum database. No other program trusts it. It is made on first use, since processes of tests
// that start this program thousands of times contain this package.
var sumKey = sync.OnceValue(func() ed25519.PrivateKey { return ed25519.NewKeyFromSeed([]byte("the stand-in checksum database: ")) })

// verifier returns the public key in the form of a signed note, and the key's number.
func verifier() (string, uint32) {
	key := "\x01" + string(sumKey().Public().(ed25519.PublicKey))
	sum := sha256.Sum256([]byte(sumHost + "\n" + key))
	return key, binary.BigEndian.Uint32(sum[:4])
}

// signed returns a text in the form of a signed note.
func signed(text string) string {
	_, number := verifier()
	signature := append(binary.BigEndian.AppendUint32(nil, number), ed25519.Sign(sumKey(), []byte(text))...)
	return fmt.Sprintf("%s\n\u2014 %s %s\n", text, sumHost, base64.StdEncoding.EncodeToString(signature))
}
