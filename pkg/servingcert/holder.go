package servingcert

import (
	"crypto/tls"
	"errors"
	"sync/atomic"
)

// errNone is for those who come before there is a certificate.
var errNone = errors.New("there is no certificate yet")

// Holder has the certificate that the server shows.
type Holder struct {
	current atomic.Pointer[tls.Certificate]
}

// set shows another certificate to those who connect from now on.
func (h *Holder) set(pair *Pair) {
	h.current.Store(&tls.Certificate{Certificate: [][]byte{pair.Cert.Raw}, PrivateKey: pair.Key, Leaf: pair.Cert})
}

// GetCertificate is for tls.Config.
func (h *Holder) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if cert := h.current.Load(); cert != nil {
		return cert, nil
	}
	return nil, errNone
}

// Ready says whether there is a certificate.
func (h *Holder) Ready() error {
	_, err := h.GetCertificate(nil)
	return err
}
