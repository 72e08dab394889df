// Package secrets finds keys and tokens in text, with the rules of the gitleaks project.
//
// The rules are gitleaks' own file (gitleaks.toml, version 8.30.1, under LICENSE.gitleaks), unchanged. This package
// contains the code that applies them: the keywords of a rule, its expression, the entropy of a match, and the lists
// of values that are not secrets.
//
// Gitleaks is also a library. At that version, it brings 57 modules with it (archive formats, template and
// configuration languages, terminal styles), adds 6 MB to a program of 6.5 MB, and runs git itself. A gate that reads
// hostile bytes should not contain a decompressor for each archive format.
//
// One feature of gitleaks is left out, because the author of the text is not trusted: a "gitleaks:allow" comment has
// no effect. Base64 is decoded once, and the result is searched as well. Our own rules, for secrets without a rule in
// gitleaks, are in own.toml.
//
// A rule's expression is matched only against the text near one of the rule's keywords, as far as a match can reach.
// Go's expressions take about a microsecond a byte, and most texts contain a keyword somewhere. Rules that look for a
// name, an assignment and a value are matched only where the value, by its bytes, what follows it and its entropy, can be a
// secret. Near a change, the keywords are searched up to 2 KB from it, and all around it for the three rules whose matches
// have several lines and no bound.
//
// To update the rules, replace gitleaks.toml by config/gitleaks.toml of a newer release, and run the tests.
package secrets
