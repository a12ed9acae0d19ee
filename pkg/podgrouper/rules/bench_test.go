package rules_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/copse-dev/copse/pkg/podgrouper/config"
	"github.com/copse-dev/copse/pkg/podgrouper/owners"
)

// BenchmarkAdmission is what grouping a pod costs while it is created, once its owners have
// been read.
func BenchmarkAdmission(b *testing.B) {
	s := newScene(b, deployment, config.Config{})
	pod := &corev1.Pod{}
	if err := s.reader.Get(b.Context(), types.NamespacedName{Namespace: "ns", Name: "web-7d4b-a"}, pod); err != nil {
		b.Fatal(err)
	}
	grouper := s.grouper()
	resolver := owners.New(s.reader, s.mapper, owners.Options{})
	b.ReportAllocs()
	for b.Loop() {
		chain, err := resolver.Find(b.Context(), pod)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := grouper.Identify(pod, chain); err != nil {
			b.Fatal(err)
		}
	}
}
