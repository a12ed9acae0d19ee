package servingcert

import (
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	"k8s.io/klog/v2"
)

// Renew does all that is to be done about a state at a moment. It returns the new state,
// whether it is another, and when it has to be renewed the next time.
func Renew(s State, names Names, now time.Time) (State, bool, time.Time, error) {
	for changed := false; ; changed = true {
		todo, deadline := decide(s, names, now)
		if todo == keep {
			return s, changed, deadline, nil
		}
		klog.InfoS("The certificate of the webhook is renewed", "step", todo)
		next, err := apply(s, todo, names, now)
		if err != nil {
			return s, false, time.Time{}, fmt.Errorf("%s: %w", todo, err)
		}
		s = next
	}
}

func apply(s State, todo step, names Names, now time.Time) (State, error) {
	var err error
	switch todo {
	case startAnew:
		s = State{}
		s.CA, err = NewCA(now.Add(-backdated), now.Add(caLifetime))
	case prepare:
		s.Next, err = NewCA(now.Add(-backdated), now.Add(caLifetime))
	case dropNext:
		s.Next = nil
	case promote:
		s.Old = append(slices.Clone(s.Old), s.CA.Cert)
		s.CA, s.Next = s.Next, nil
	case issueServing:
		end := earliest([]time.Time{now.Add(servingLifetime), s.CA.Cert.NotAfter})
		s.Serving, err = NewServing(s.CA, names, now.Add(-backdated), end)
	case dropOld:
		s.Old = slices.DeleteFunc(slices.Clone(s.Old), func(old *x509.Certificate) bool { return !now.Before(old.NotAfter) })
	}
	return s, err
}
