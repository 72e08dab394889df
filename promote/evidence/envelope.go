package evidence

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

const (
	// payloadType is the type of in-toto statements in an envelope.
	payloadType = "application/vnd.in-toto+json"
	// Namespace is the namespace of the signatures, see ssh-keygen(1) -Y sign.
	Namespace = "git-airlock"
	// lineLimit bounds the length of an envelope, because everybody who can push can write notes.
	lineLimit = 256 << 10
)

// wire is an envelope of DSSE, see envelope.md of secure-systems-lab/dsse. The signature is an armored signature of SSH.
type wire struct {
	PayloadType string      `json:"payloadType"`
	Payload     []byte      `json:"payload"`
	Signatures  []signature `json:"signatures"`
}

type signature struct {
	KeyID string `json:"keyid"` // the fingerprint of the public key, as ssh-keygen -l prints it
	Sig   []byte `json:"sig"`
}

// Envelope is a statement with its signature.
type Envelope struct {
	Statement Statement
	Key       ssh.PublicKey
	// Digest identifies the envelope: the SHA-256 of its line, in hexadecimal digits. If its signature has two forms, both lines have the digest of
	// the one that Seal writes.
	Digest string

	other     string // the SHA-256 of the line with the other form of the signature; empty if there is none
	signed    []byte
	signature *sshsig.Signature
}

// encoded returns the pre-authentication encoding of a payload: the bytes that are signed (protocol.md of DSSE).
func encoded(payload []byte) []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload)
}

// Payload returns the bytes that a signature of the statement must cover, and the payload in them.
func (s Statement) Payload() (signed, payload []byte, err error) {
	if payload, err = json.Marshal(s); err != nil {
		return nil, nil, err
	}
	return encoded(payload), payload, nil
}

// Seal returns the line of an envelope without a newline, and its [Envelope.Digest]. armored is the signature of the bytes that
// [Statement.Payload] returned.
func Seal(payload, armored []byte) (line, digest string, err error) {
	sig, err := sshsig.Unarmor(armored)
	if err != nil {
		return "", "", fmt.Errorf("signature: %w", err)
	}
	lines, err := linesOf(payload, sig)
	if err != nil {
		return "", "", err
	}
	return string(lines[0]), digestOf(lines[0]), nil
}

// linesOf returns the lines that an envelope can have: one for each form of its signature.
func linesOf(payload []byte, sig *sshsig.Signature) (lines [][]byte, err error) {
	forms, err := exactForms(sig)
	if err != nil {
		return nil, fmt.Errorf("signature: %w", err)
	}
	for _, form := range forms {
		line, err := json.Marshal(wire{payloadType, payload, []signature{{ssh.FingerprintSHA256(sig.PublicKey), sshsig.Armor(form)}}})
		if err != nil {
			return nil, err
		}
		if len(line) > lineLimit {
			return nil, errors.New("the statement is too long")
		}
		lines = append(lines, line)
	}
	return lines, nil
}

func digestOf(line []byte) string { return fmt.Sprintf("%x", sha256.Sum256(line)) }

// ErrForm reports a line that is not an envelope in the exact form in which Seal writes it. An envelope has no other form than those of its signature,
// which have one digest, so nobody can make a second statement of the same content.
var ErrForm = errors.New("not an envelope of git-airlock in its exact form")

// Open reads a line. It does not check the signature.
func Open(line []byte) (Envelope, error) {
	var w wire
	if len(line) > lineLimit || json.Unmarshal(line, &w) != nil || w.PayloadType != payloadType || len(w.Signatures) != 1 {
		return Envelope{}, ErrForm
	}
	sig, err := sshsig.Unarmor(w.Signatures[0].Sig)
	if err != nil {
		return Envelope{}, fmt.Errorf("signature: %w", err)
	}
	lines, err := linesOf(w.Payload, sig)
	if err != nil || !slices.ContainsFunc(lines, func(exact []byte) bool { return bytes.Equal(exact, line) }) {
		return Envelope{}, errors.Join(err, ErrForm)
	}
	s, err := parseStatement(w.Payload)
	e := Envelope{Statement: s, Key: sig.PublicKey, Digest: digestOf(lines[0]), signed: encoded(w.Payload), signature: sig}
	if len(lines) > 1 {
		e.other = digestOf(lines[1])
	}
	return e, err
}

// Verify checks the signature. It does not check whose key made it.
func (e Envelope) Verify() error {
	switch e.signature.HashAlgorithm {
	case sshsig.HashSHA256, sshsig.HashSHA512:
	default:
		return errors.New("signature: unknown hash")
	}
	if err := sshsig.Verify(bytes.NewReader(e.signed), e.signature, e.Key, e.signature.HashAlgorithm, Namespace); err != nil {
		return fmt.Errorf("signature: %w", err)
	}
	return nil
}

// Fingerprint returns the fingerprint of the public key, as ssh-keygen -l prints it.
func (e Envelope) Fingerprint() string { return ssh.FingerprintSHA256(e.Key) }

// AddLine returns a note with one more envelope. Its lines are sorted, as after a merge of notes with cat_sort_uniq.
func AddLine(note, line string) string {
	lines := append(strings.FieldsFunc(note, func(r rune) bool { return r == '\n' }), line)
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n") + "\n"
}
