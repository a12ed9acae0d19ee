package servingcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"slices"
	"time"
)

// Names are what the server is called by.
type Names struct {
	DNS []string
	IPs []net.IP
}

// of says whether a certificate is for these names and no others.
func (n Names) of(cert *x509.Certificate) bool {
	return slices.Equal(n.DNS, cert.DNSNames) && slices.EqualFunc(n.IPs, cert.IPAddresses, net.IP.Equal)
}

// NewCA makes an authority.
func NewCA(notBefore, notAfter time.Time) (*Pair, error) {
	return issue(&x509.Certificate{
		// Authorities are told apart by their name when certificates are verified.
		Subject:               pkix.Name{CommonName: "copse-webhook-ca-" + notBefore.UTC().Format("20060102150405")},
		NotBefore:             notBefore,
		NotAfter:              notAfter,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}, nil)
}

// NewServing makes the certificate of a server.
func NewServing(ca *Pair, names Names, notBefore, notAfter time.Time) (*Pair, error) {
	template := &x509.Certificate{
		NotBefore:   notBefore,
		NotAfter:    notAfter,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    names.DNS,
		IPAddresses: names.IPs,
	}
	if len(names.DNS) > 0 {
		template.Subject.CommonName = names.DNS[0][:min(len(names.DNS[0]), maxCommonName)]
	}
	return issue(template, ca)
}

// maxCommonName is what X.520 allows; the name itself is among the DNS names, whole.
const maxCommonName = 64

// issue signs a certificate for a new key; an authority, which has none above it, itself.
func issue(template *x509.Certificate, ca *Pair) (*Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, err
	}
	parent := &Pair{Cert: template, Key: key}
	if ca != nil {
		parent = ca
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent.Cert, key.Public(), parent.Key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &Pair{Cert: cert, Key: key}, nil
}
