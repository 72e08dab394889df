package evidence

import (
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"math/big"
	"slices"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

const (
	// edSize is the length of an Ed25519 signature.
	edSize = 64
	// touchSize is the length of what a security key adds behind a signature: a byte of flags and a counter, see PROTOCOL.u2f of OpenSSH.
	touchSize = 5
)

// curves are the curves of the ECDSA signatures, by the names of their formats.
var curves = map[string]elliptic.Curve{
	ssh.KeyAlgoECDSA256:   elliptic.P256(),
	ssh.KeyAlgoSKECDSA256: elliptic.P256(),
	ssh.KeyAlgoECDSA384:   elliptic.P384(),
	ssh.KeyAlgoECDSA521:   elliptic.P521(),
}

// errSignatureForm reports a signature in a form that OpenSSH does not write, or of a kind that it does not accept.
var errSignatureForm = errors.New("its form is not one that OpenSSH writes")

// exactForms returns the forms of a signature that a line may have, first the one that Seal writes. The package ssh also accepts others, such as
// one with bytes behind the signature, with which everybody could make a second line of the same statement. Only an ECDSA signature (r, s) has two
// forms: OpenSSH writes and accepts (r, n-s), too. Seal writes the one with the smaller number.
func exactForms(sig *sshsig.Signature) ([]*sshsig.Signature, error) {
	format, blob, behind := sig.Signature.Format, sig.Signature.Blob, 0
	if format == ssh.KeyAlgoSKED25519 || format == ssh.KeyAlgoSKECDSA256 {
		behind = touchSize
	}
	if len(sig.Signature.Rest) != behind {
		return nil, errSignatureForm
	}
	var blobs [][]byte
	switch format {
	case ssh.KeyAlgoED25519, ssh.KeyAlgoSKED25519:
		if len(blob) == edSize {
			blobs = [][]byte{blob}
		}
	case ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512:
		if full := fullRSA(sig.PublicKey, blob); full != nil {
			blobs = [][]byte{full}
		}
	default:
		blobs = ecdsaForms(curves[format], blob)
	}
	if blobs == nil {
		return nil, errSignatureForm
	}
	var forms []*sshsig.Signature
	for _, blob := range blobs {
		form, inner := *sig, *sig.Signature
		inner.Blob = blob
		form.Signature = &inner
		forms = append(forms, &form)
	}
	return forms, nil
}

// fullRSA returns an RSA signature in the length of its key, or nil if it is longer. Some agents of SSH leave zeros at the beginning out.
func fullRSA(of ssh.PublicKey, blob []byte) []byte {
	if certificate, is := of.(*ssh.Certificate); is {
		of = certificate.Key
	}
	public, is := of.(ssh.CryptoPublicKey)
	if !is {
		return nil
	}
	key, is := public.CryptoPublicKey().(*rsa.PublicKey)
	if !is || len(blob) > key.Size() {
		return nil
	}
	return slices.Concat(make([]byte, key.Size()-len(blob)), blob)
}

// ecdsaForms returns the two forms of an ECDSA signature, first the one with the smaller number, or nil if it is not one. Its numbers are written
// without more zeros than they need.
func ecdsaForms(curve elliptic.Curve, blob []byte) [][]byte {
	var pair struct{ R, S *big.Int }
	if curve == nil || ssh.Unmarshal(blob, &pair) != nil || pair.S.Sign() <= 0 || pair.S.Cmp(curve.Params().N) >= 0 {
		return nil
	}
	other := pair
	other.S = new(big.Int).Sub(curve.Params().N, pair.S)
	if other.S.Cmp(pair.S) < 0 {
		pair, other = other, pair
	}
	return [][]byte{ssh.Marshal(pair), ssh.Marshal(other)}
}
