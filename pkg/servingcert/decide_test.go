package servingcert

import (
	"crypto/x509"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// start is when the clocks of these tests begin.
func start() time.Time { return time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC) }

func names() Names {
	return Names{DNS: []string{"webhook.system.svc", "webhook.system.svc.cluster.local"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}
}

func expect(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(out T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}

// ca is an authority that was made at a moment, for six hours.
func ca(t *testing.T, at time.Time) *Pair {
	t.Helper()
	return must[*Pair](t)(NewCA(at.Add(-backdated), at.Add(6*time.Hour)))
}

func serving(t *testing.T, ca *Pair, names Names, at time.Time, life time.Duration) *Pair {
	t.Helper()
	return must[*Pair](t)(NewServing(ca, names, at.Add(-backdated), at.Add(life)))
}

func TestDecide(t *testing.T) {
	first := ca(t, start())
	second := ca(t, start().Add(4*time.Hour))
	forOurs := serving(t, first, names(), start(), 90*time.Minute)
	renamed := names()
	renamed.DNS = renamed.DNS[:1]
	readdressed := names()
	readdressed.IPs = nil
	for name, tc := range map[string]struct {
		state State
		names Names
		at    time.Duration
		want  step
		next  time.Duration
	}{
		"nothing is there":                    {State{}, names(), 0, startAnew, 0},
		"an authority that is over":           {State{CA: first, Serving: forOurs}, names(), 6 * time.Hour, startAnew, 0},
		"an authority of the future":          {State{CA: second, Next: first, Serving: forOurs}, names(), 0, startAnew, 0},
		"no serving certificate":              {State{CA: first}, names(), 0, issueServing, 0},
		"all is well":                         {State{CA: first, Serving: forOurs}, names(), 0, keep, time.Hour},
		"right before two thirds of its life": {State{CA: first, Serving: forOurs}, names(), time.Hour - time.Second, keep, time.Hour},
		"two thirds of its life":              {State{CA: first, Serving: forOurs}, names(), time.Hour, issueServing, 0},
		"a serving certificate that is over":  {State{CA: first, Serving: forOurs}, names(), 2 * time.Hour, issueServing, 0},
		"another name":                        {State{CA: first, Serving: forOurs}, renamed, 0, issueServing, 0},
		"another address":                     {State{CA: first, Serving: forOurs}, readdressed, 0, issueServing, 0},
		"another authority":                   {State{CA: ca(t, start()), Serving: forOurs}, names(), 0, issueServing, 0},
		"two thirds of the authority's life":  {State{CA: first, Serving: forOurs}, names(), 4 * time.Hour, prepare, 0},
		"right before it":                     {State{CA: first, Serving: serving(t, first, names(), start(), 6*time.Hour)}, names(), 4*time.Hour - time.Second, keep, 4 * time.Hour},
		"the next is not long trusted": {
			State{CA: first, Next: second, Serving: serving(t, first, names(), start().Add(3*time.Hour), 3*time.Hour)}, names(), 5*time.Hour - time.Second, keep, 5 * time.Hour,
		},
		"the next is trusted":              {State{CA: first, Next: second, Serving: forOurs}, names(), 5 * time.Hour, promote, 0},
		"the next is over":                 {State{CA: second, Next: first, Serving: forOurs}, names(), 7 * time.Hour, dropNext, 0},
		"one made late is trusted earlier": {State{CA: first, Next: ca(t, start().Add(5*time.Hour)), Serving: forOurs}, names(), 5*time.Hour + 30*time.Minute, promote, 0},
		"the certificate lasts as long as the authority": {
			State{CA: first, Next: ca(t, start().Add(6*time.Hour-time.Minute)), Serving: serving(t, first, names(), start(), 6*time.Hour)}, names(), 6*time.Hour - 50*time.Second, keep, 6*time.Hour - 30*time.Second,
		},
		"an old authority is not over": {
			State{CA: second, Old: []*x509.Certificate{first.Cert}, Serving: serving(t, second, names(), start().Add(5*time.Hour), 5*time.Hour)}, names(), 5 * time.Hour, keep, 6 * time.Hour,
		},
		"an old authority is over": {
			State{CA: second, Old: []*x509.Certificate{first.Cert}, Serving: serving(t, second, names(), start().Add(5*time.Hour), 5*time.Hour)}, names(), 6 * time.Hour, dropOld, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, next := decide(tc.state, tc.names, start().Add(tc.at))
			expect(t, "step", tc.want, got)
			if tc.want == keep {
				expect(t, "deadline", start().Add(tc.next), next)
			}
		})
	}
}

// Over years, asked at its deadlines alone, the certificate that is shown is trusted by
// whoever knows the bundle of now or the one before it, and by nobody for longer than the
// certificates last.
func TestNobodyNoticesRenewals(t *testing.T) {
	var s State
	now := start().Add(123 * time.Millisecond)
	end := now.Add(5 * 365 * 24 * time.Hour)
	var before []byte
	authorities, certificates := map[string]bool{}, map[string]bool{}
	for passes := 0; now.Before(end); passes++ {
		if passes > 200 {
			t.Fatal("it is renewed all the time")
		}
		renewed, changed, next, err := Renew(s, names(), now)
		if err != nil {
			t.Fatal(err)
		}
		if !changed {
			t.Fatalf("it is asked at %s in vain", now)
		}
		s = Decode(must[map[string][]byte](t)(renewed.Encode()))
		if diff := cmp.Diff(renewed.Bundle(), s.Bundle()); diff != "" {
			t.Fatal("the Secret does not keep what is trusted")
		}
		verifies(t, s, s.Bundle(), now)
		if before != nil {
			verifies(t, s, before, now)
		}
		// Until it is asked again.
		verifies(t, s, s.Bundle(), next)
		authorities[string(s.CA.Cert.Raw)], certificates[string(s.Serving.Cert.Raw)] = true, true
		if n := len(s.Old); n > 1 {
			t.Errorf("%d old authorities are trusted", n)
		}
		before, now = s.Bundle(), next
	}
	if len(authorities) < 5 || len(certificates) < 20 {
		t.Errorf("%d authorities and %d certificates in five years", len(authorities), len(certificates))
	}
}

func verifies(t *testing.T, s State, bundle []byte, at time.Time) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	for _, name := range []string{"webhook.system.svc", "webhook.system.svc.cluster.local", "127.0.0.1"} {
		if _, err := s.Serving.Cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: at}); err != nil {
			t.Fatalf("at %s %s: %v", at, name, err)
		}
	}
}

// Nobody was there for long.
func TestRenewalComesToAnEndAtAnyTime(t *testing.T) {
	first, _, _, err := Renew(State{}, names(), start())
	if err != nil {
		t.Fatal(err)
	}
	for after := time.Duration(0); after < 2*caLifetime; after += 7*24*time.Hour + 3*time.Second {
		now := start().Add(after)
		s, _, next, err := Renew(first, names(), now)
		if err != nil {
			t.Fatal(err)
		}
		verifies(t, s, s.Bundle(), now)
		if !now.Before(next) {
			t.Errorf("after %s the next time is %s", after, next)
		}
	}
	for left := -2 * time.Second; left < 2*time.Second; left += 50 * time.Millisecond {
		now := first.CA.Cert.NotAfter.Add(left)
		s, _, next, err := Renew(first, names(), now)
		if err != nil {
			t.Fatal(err)
		}
		verifies(t, s, s.Bundle(), now)
		if !now.Before(next) {
			t.Errorf("%s before its end the next time is %s", left, next)
		}
	}
}

func TestWhatCannotBeReadIsMadeAnew(t *testing.T) {
	whole, _, _, err := Renew(State{}, names(), start())
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{caCertKey, caKeyKey, servingCertKey, servingKeyKey} {
		data := must[map[string][]byte](t)(whole.Encode())
		data[key] = []byte("junk")
		s, changed, _, err := Renew(Decode(data), names(), start())
		if err != nil || !changed {
			t.Fatalf("%s: changed %t, error %v", key, changed, err)
		}
		verifies(t, s, s.Bundle(), start())
	}
}
