package evidence

import (
	"bytes"
	"crypto/ed25519"
	"encoding/pem"
	"fmt"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// NewKey makes a private key, in the format of OpenSSH.
func NewKey() ([]byte, error) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(block), nil
}

// Sign signs the bytes that [Statement.Payload] returned, with a key that NewKey has made. It returns the armored signature.
func Sign(key, signed []byte) ([]byte, error) {
	signer, err := ssh.ParsePrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("read the key of the session: %w", err)
	}
	sig, err := sshsig.Sign(bytes.NewReader(signed), signer, sshsig.HashSHA512, Namespace)
	if err != nil {
		return nil, err
	}
	return sshsig.Armor(sig), nil
}

// Fingerprint returns the fingerprint of the key that made an armored signature.
func Fingerprint(armored []byte) (string, error) {
	sig, err := sshsig.Unarmor(armored)
	if err != nil {
		return "", fmt.Errorf("signature: %w", err)
	}
	return ssh.FingerprintSHA256(sig.PublicKey), nil
}

// KeyFingerprint returns the fingerprint of a private key that NewKey has made.
func KeyFingerprint(key []byte) (string, error) {
	signer, err := ssh.ParsePrivateKey(key)
	if err != nil {
		return "", fmt.Errorf("read the key of the session: %w", err)
	}
	return ssh.FingerprintSHA256(signer.PublicKey()), nil
}
