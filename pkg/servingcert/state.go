package servingcert

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
)

// Keys of the Secret.
const (
	caCertKey, caKeyKey           = "ca.crt", "ca.key"
	nextCertKey, nextKeyKey       = "next-ca.crt", "next-ca.key"
	oldCertsKey                   = "old-ca.crt"
	servingCertKey, servingKeyKey = "tls.crt", "tls.key"
)

// Pair is a certificate with its key.
type Pair struct {
	Cert *x509.Certificate
	Key  crypto.Signer
}

// State is what the Secret holds.
type State struct {
	// CA is the authority that has signed the serving certificate.
	CA *Pair
	// Next is the authority after it, which the cluster trusts already.
	Next *Pair
	// Old are earlier authorities, trusted until their end.
	Old []*x509.Certificate
	// Serving is the certificate of the server.
	Serving *Pair
}

// Decode reads the data of a Secret. What cannot be read is not there: it is made anew.
func Decode(data map[string][]byte) State {
	s := State{
		CA:      decodePair(data[caCertKey], data[caKeyKey]),
		Next:    decodePair(data[nextCertKey], data[nextKeyKey]),
		Serving: decodePair(data[servingCertKey], data[servingKeyKey]),
	}
	for rest := data[oldCertsKey]; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return s
		}
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			s.Old = append(s.Old, cert)
		}
	}
}

func decodePair(cert, key []byte) *Pair {
	// It checks that they belong together.
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil
	}
	return &Pair{Cert: pair.Leaf, Key: signer}
}

// Encode writes the data of a Secret.
func (s State) Encode() (map[string][]byte, error) {
	data := map[string][]byte{}
	for _, entry := range []struct {
		pair      *Pair
		cert, key string
	}{{s.CA, caCertKey, caKeyKey}, {s.Next, nextCertKey, nextKeyKey}, {s.Serving, servingCertKey, servingKeyKey}} {
		if entry.pair == nil {
			continue
		}
		key, err := encodeKey(entry.pair.Key)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", entry.key, err)
		}
		data[entry.cert], data[entry.key] = encodeCert(entry.pair.Cert), key
	}
	if len(s.Old) > 0 {
		data[oldCertsKey] = encodeCerts(s.Old)
	}
	return data, nil
}

// Bundle is what the cluster has to trust, in PEM; empty when there is nothing.
func (s State) Bundle() []byte {
	var certs []*x509.Certificate
	for _, pair := range []*Pair{s.CA, s.Next} {
		if pair != nil {
			certs = append(certs, pair.Cert)
		}
	}
	return encodeCerts(slices.Concat(certs, s.Old))
}

func encodeCerts(certs []*x509.Certificate) []byte {
	var out bytes.Buffer
	for _, cert := range certs {
		out.Write(encodeCert(cert))
	}
	return out.Bytes()
}

func encodeCert(cert *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
}

func encodeKey(key crypto.Signer) ([]byte, error) {
	private, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%T is no key of ours", key)
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
