package app

import (
	"fmt"
	"net"
	"testing"

	"github.com/copse-dev/copse/pkg/servingcert"
)

func TestTheCertificateIsForTheServiceAndWhatItIsCalledBeside(t *testing.T) {
	options := NewOptions()
	options.LeaderElectionNamespace, options.ClusterDomain, options.WebhookNames = "n", "d", []string{"host", "10.0.0.1"}
	got, err := options.webhookNames()
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "names", servingcert.Names{DNS: []string{"copse-webhook.n.svc", "copse-webhook.n.svc.d", "host"}, IPs: []net.IP{net.ParseIP("10.0.0.1")}}, got)
}

func TestTheWebhookIsServedWhereItIsToldTo(t *testing.T) {
	for address, want := range map[string]string{"0": " 0", ":9443": " 9443", "127.0.0.1:1": "127.0.0.1 1", "[::1]:2": "::1 2"} {
		options := NewOptions()
		options.WebhookBindAddress = address
		host, port, err := options.webhookAddress()
		if err != nil {
			t.Fatal(err)
		}
		expect(t, address, want, fmt.Sprintf("%s %d", host, port))
	}
}

// More than these may not be read, so asking for it would keep the cache from starting.
func TestOneSecretAndOneConfigurationAreRead(t *testing.T) {
	options := NewOptions()
	got := map[string]string{}
	for obj, by := range managerOptions(options, true).Cache.ByObject {
		if by.Field == nil {
			continue
		}
		namespaces := ""
		for namespace := range by.Namespaces {
			namespaces += namespace
		}
		got[fmt.Sprintf("%T", obj)] = namespaces + " " + by.Field.String()
	}
	expect(t, "fields", map[string]string{
		"*v1.Secret":                       "copse-system metadata.name=copse-webhook-certificate",
		"*v1.MutatingWebhookConfiguration": " metadata.name=copse-pod-grouper",
	}, got)
}
