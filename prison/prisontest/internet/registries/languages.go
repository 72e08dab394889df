package registries

import (
	"crypto/sha512"
	"encoding/base64"
	"fmt"
)

// npm returns the answers of npm's host, with the package standin.
func npm() map[string]files {
	content := tarball(file{"package/package.json", `{"name":"standin","version":"1.0.0","main":"main.js"}`}, file{"package/main.js", "module.exports = 'standin'\n"})
	sum := sha512.Sum512([]byte(content))
	version := fmt.Sprintf(`{"name":"standin","version":"1.0.0","main":"main.js","dist":{"tarball":"https://registry.npmjs.org/standin/-/standin-1.0.0.tgz","integrity":"sha512-%s"}}`,
		base64.StdEncoding.EncodeToString(sum[:]))
	return map[string]files{"registry.npmjs.org": {
		"/standin":                      `{"name":"standin","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":` + version + `}}`,
		"/standin/-/standin-1.0.0.tgz":  content,
		"/-/npm/v1/security/audits":     `{}`,
		"/-/npm/v1/security/advisories": `{}`,
	}}
}

// pypi returns the answers of Python's hosts, with the project standin. The index and the files are at different hosts.
func pypi() map[string]files {
	const name, info = "standin-1.0-py3-none-any.whl", "standin-1.0.dist-info/"
	wheel := zipped(file{"standin.py", "name = 'standin'\n"}, file{info + "METADATA", "Metadata-Version: 2.1\nName: standin\nVersion: 1.0\n"},
		file{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: standin\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		file{info + "RECORD", "standin.py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n"})
	const at = "/packages/11/22/" + name
	return map[string]files{
		"pypi.org":               {"/simple/standin/": fmt.Sprintf("<!DOCTYPE html><html><body><a href=\"https://files.pythonhosted.org%s#sha256=%s\">%s</a></body></html>", at, sum256(wheel), name)},
		"files.pythonhosted.org": {at: wheel},
	}
}

// crates returns the answers of Rust's hosts, with the crate standin. The sparse index and the crate are at different hosts.
func crates() map[string]files {
	content := tarball(file{"standin-1.0.0/Cargo.toml", "[package]\nname = \"standin\"\nversion = \"1.0.0\"\nedition = \"2021\"\n"}, file{"standin-1.0.0/src/lib.rs", "pub fn name() -> &'static str { \"standin\" }\n"})
	return map[string]files{
		"index.crates.io": {
			"/config.json":   `{"dl":"https://static.crates.io/crates","api":"https://crates.io"}`,
			"/st/an/standin": fmt.Sprintf(`{"name":"standin","vers":"1.0.0","deps":[],"cksum":"%s","features":{},"yanked":false}`+"\n", sum256(content)),
		},
		"static.crates.io": {"/crates/standin/1.0.0/download": content},
		"crates.io":        {"/api/v1/crates/standin/1.0.0/download": content},
	}
}

// maven returns the answers of Maven's hosts, both with the artifact standin.
func maven() map[string]files {
	const at = "/maven2/test/standin/1.0/standin-1.0.pom"
	content := "<project><modelVersion>4.0.0</modelVersion><groupId>test</groupId><artifactId>standin</artifactId><version>1.0</version></project>\n"
	return map[string]files{"repo.maven.apache.org": {at: content}, "repo1.maven.org": {at: content}}
}
