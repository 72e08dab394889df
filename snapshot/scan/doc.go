// Package scan searches the files of a snapshot for secrets. Begin reading at [Scanner.Tree].
//
// A [Detector] searches the text of the files. Files are also rated by their names: a file with the name of a key store
// is reported with any content. Findings are ranked by their certainty and by the damage that the secret could do. A
// finding names the place and never contains the secret.
//
// # Rules
//
// The same secrets are searched on the way in and on the way out, so there is one set of rules, in
// promote/policy/secrets. This package must not import promote, promote must not import this package, and a package for
// both would contain one function. So the command line passes the rules in, as a [Detector].
//
// # Severity
//
// A secret with a form of its own, or in a file that is made for secrets, is high. A value beside a word like
// "password" is medium. Among tests, examples and documentation, in templates and in third-party code, each severity
// is one lower: a key under testdata is never high. In a committed file that an ignore file names, it is one higher,
// since somebody meant to keep the file out. Exceptions are settings of the user, with a reason. The recipe cannot add
// exceptions, because the agent can write the recipe.
//
// # At a start
//
// The search runs at the same time as the snapshot and the prison's start, and finishes before any data goes in. The
// rules that can refuse a start cost 10 ns of processor time for each byte. The rules that guess cost as much again, and
// cannot refuse a start, so a start applies them to the first 16 MB only. No result is kept for the next start.
//
// # What is found
//
// The newest commits of eleven public repositories, whose owners know what they have published (scripts/alarms
// --scan):
//
//	        age  libgit2  lazygit  git-town  fzf  jq  symfony   babel    git    vim    tldr
//	files    98   15,604    2,320     4,530  160  427   13,139  27,674  4,843  8,521  38,490
//	high      2        0        0         0    0    0        0       0      0      0       0
//	medium   28        0        0         2    0    0       15       2      3      6       0
//	low      14        6        0         2    0    0       27       6     10      1       0
//
// A start would be refused in one of the eleven: age, which is about keys. If keys among tests and in third-party code
// were high, it would be refused in four. Of 74 planted secrets 71 are found. The others are a password in prose, one in
// an archive, and a token that is encoded in Base64 twice. Base64 is decoded once, and the result is searched for secrets
// with a form of their own.
//
// Archives are reported and not opened. Unpacking would run decompressors on a stranger's bytes that nobody has checked,
// and with a limit on depth it would still miss an archive within an archive.
package scan
