package servingcert

import (
	"crypto/x509"
	"time"
)

const (
	// caLifetime and servingLifetime are how long certificates are valid.
	caLifetime      = 360 * 24 * time.Hour
	servingLifetime = 90 * 24 * time.Hour
	// backdated is how far clocks may differ: a certificate is valid before it is made.
	backdated = 5 * time.Minute
)

// step is one change to a state.
type step string

const (
	// keep: there is nothing to do until the deadline.
	keep step = ""
	// startAnew makes an authority where there is none that is valid, and trusts no other.
	startAnew step = "start anew"
	// prepare makes the next authority, for the cluster to trust.
	prepare step = "prepare the next authority"
	// dropNext drops a next authority that is of no use.
	dropNext step = "drop the next authority"
	// promote signs with the next authority from now on.
	promote step = "use the next authority"
	// issueServing makes a serving certificate.
	issueServing step = "issue a serving certificate"
	// dropOld drops authorities that are past their end.
	dropOld step = "drop old authorities"
)

// decide says what is to be done first about a state, and when it has to be asked again when
// there is nothing. All replicas come to the same answer.
func decide(s State, names Names, now time.Time) (step, time.Time) {
	if s.CA == nil || !valid(s.CA.Cert, now) {
		return startAnew, time.Time{}
	}
	deadlines := []time.Time{s.CA.Cert.NotAfter}
	switch {
	case s.Next != nil && !valid(s.Next.Cert, now):
		return dropNext, time.Time{}
	case s.Next == nil && !now.Before(renewal(s.CA.Cert)):
		return prepare, time.Time{}
	case s.Next == nil:
		deadlines = append(deadlines, renewal(s.CA.Cert))
	case !now.Before(promotion(s.CA.Cert, s.Next.Cert)):
		return promote, time.Time{}
	default:
		deadlines = append(deadlines, promotion(s.CA.Cert, s.Next.Cert))
	}
	if !serves(s, names, now) {
		return issueServing, time.Time{}
	}
	if due := renewal(s.Serving.Cert); now.Before(due) {
		deadlines = append(deadlines, due)
	}
	for _, old := range s.Old {
		if !now.Before(old.NotAfter) {
			return dropOld, time.Time{}
		}
		deadlines = append(deadlines, old.NotAfter)
	}
	return keep, earliest(deadlines)
}

func valid(cert *x509.Certificate, now time.Time) bool {
	return !now.Before(cert.NotBefore) && now.Before(cert.NotAfter)
}

// serves says whether the serving certificate is as it has to be, for some time to come. One
// that lasts as long as the authority cannot be better.
func serves(s State, names Names, now time.Time) bool {
	if s.Serving == nil || !valid(s.Serving.Cert, now) || !names.of(s.Serving.Cert) || s.Serving.Cert.CheckSignatureFrom(s.CA.Cert) != nil {
		return false
	}
	return now.Before(renewal(s.Serving.Cert)) || !s.Serving.Cert.NotAfter.Before(s.CA.Cert.NotAfter)
}

// made is when a certificate was made.
func made(cert *x509.Certificate) time.Time {
	return cert.NotBefore.Add(backdated)
}

// renewal is when two thirds of the life of a certificate are over.
func renewal(cert *x509.Certificate) time.Time {
	return made(cert).Add(cert.NotAfter.Sub(made(cert)) / 3 * 2)
}

// promotion is when the next authority takes the place of one. Until then the cluster has to
// have learnt to trust it, for which there is a sixth of the life of the one that it
// follows, or half of what is left of that, which is less where nobody was there in time.
func promotion(ca, next *x509.Certificate) time.Time {
	trusted := made(next)
	return trusted.Add(max(0, min(ca.NotAfter.Sub(made(ca))/6, ca.NotAfter.Sub(trusted)/2)))
}

func earliest(moments []time.Time) time.Time {
	first := moments[0]
	for _, moment := range moments[1:] {
		if moment.Before(first) {
			first = moment
		}
	}
	return first
}
