package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/test/framework"
)

// autoscaled is a router that scales by its requests, and a group of a leader and two
// workers that scales by the load of its leaders.
const autoscaled = `
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: llm}
spec:
  replicas: 1
  template:
    terminationDelay: 2s
    cliques:
      - name: router
        spec:
          roleName: router
          replicas: 2
          autoScalingConfig:
            maxReplicas: 6
            metrics:
              - {type: Pods, pods: {metric: {name: requests}, target: {type: AverageValue, averageValue: "10"}}}
          podSpec: {containers: [{name: main, image: example.com/router}]}
      - name: leader
        spec:
          roleName: leader
          replicas: 1
          podSpec: {containers: [{name: main, image: example.com/server}]}
      - name: worker
        spec:
          roleName: worker
          replicas: 2
          podSpec: {containers: [{name: main, image: example.com/server}]}
    podCliqueScalingGroups:
      - name: decode
        cliqueNames: [leader, worker]
        replicas: 1
        minAvailable: 1
        scaleConfig:
          maxReplicas: 4
          metrics:
            - {type: Pods, pods: {metric: {name: load}, target: {type: AverageValue, averageValue: "10"}}}
`

// The cluster's own autoscalers scale a clique and a scaling group by metrics, and pods
// follow at once. It runs alone: it measures, and what it registers is all the cluster's.
func TestTheClustersAutoscalersScaleCliquesAndGroups(t *testing.T) {
	ns := cluster.Namespace(t)
	metrics := serveMetrics(t, ns, map[string]int64{"requests": 10, "load": 10})
	if out := ns.Apply(autoscaled); strings.Contains(out, "Warning") {
		t.Errorf("the set is warned about: %s", out)
	}
	ns.WaitForPods(2+3, time.Minute, framework.IsReady)
	waitActive(ns, "llm-0-router", "llm-0-decode")

	// The autoscalers look for the very pods that they scale.
	for name, want := range map[string]string{
		"pclq/llm-0-router": "grove.io/podclique=llm-0-router", "pcsg/llm-0-decode": "grove.io/podcliquescalinggroup=llm-0-decode,grove.io/podcliquescalinggroup-first-pod=true",
		"pcs/llm": "app.kubernetes.io/managed-by=grove-operator,app.kubernetes.io/part-of=llm",
	} {
		selector := ns.Kubectl("get", name, "--subresource=scale", "-o", "jsonpath={.status.selector}")
		if selector != want {
			t.Errorf("the selector of %s is %q", name, selector)
		}
		ns.Eventually(time.Minute, func(context.Context) error {
			if own := ns.Kubectl("get", name, "-o", "jsonpath={.status.hpaPodSelector}{.status.selector}"); own != want {
				return fmt.Errorf("the selector in the status of %s is %q", name, own)
			}
			return nil
		})
	}
	if got := metrics.selector("requests"); got != "grove.io/podclique=llm-0-router" {
		t.Errorf("metrics were asked for of pods with %q", got)
	}

	follows(t, ns, "podcliques", "llm-0-router", 6, 4, func() { metrics.set("requests", 30) })
	ns.WaitForPods(6+3, time.Minute, framework.IsReady)
	follows(t, ns, "podcliquescalinggroups", "llm-0-decode", 4, 9, func() { metrics.set("load", 40) })
	metrics.set("load", 10)
	ns.WaitForPods(6+12, time.Minute, framework.IsReady)

	t.Run("sizes survive a change of the set", func(t *testing.T) {
		ns.Apply(strings.Replace(strings.Replace(autoscaled, "maxReplicas: 6", "maxReplicas: 5", 1), "maxReplicas: 4", "maxReplicas: 7", 1))
		ns.Eventually(time.Minute, func(context.Context) error {
			if got := ns.Kubectl("get", "hpa", "-o", "jsonpath={range .items[*]}{.metadata.name}={.spec.maxReplicas} {end}"); got != "llm-0-decode=7 llm-0-router=5 " {
				return fmt.Errorf("the maxima are %s", got)
			}
			return nil
		})
		// What is above its maximum goes down to it; what is below stays.
		ns.WaitForPods(5+12, time.Minute, framework.IsReady)
		if out := ns.KubectlFails("scale", "pclq", "llm-0-router", "--replicas=6"); !strings.Contains(out, "to 5 (spec.autoScalingConfig.maxReplicas)") {
			t.Errorf("to scale above the maximum: %s", out)
		}
	})
	t.Run("and a restart of the controllers", func(t *testing.T) {
		uids := uidByHost(t, ns)
		cluster.Kill(t, "copse-controller-manager")
		// Who makes the autoscaler anew has looked at the replica.
		ns.Kubectl("delete", "hpa", "llm-0-decode")
		awaitAutoscalers(ns, "llm-0-decode", "llm-0-router")
		ns.Never(time.Second, func(context.Context) error {
			if now := uidByHost(t, ns); !maps.Equal(uids, now) {
				return fmt.Errorf("pods changed from %v to %v", uids, now)
			}
			return nil
		})
	})
	t.Run("and what people do to an autoscaler", func(t *testing.T) {
		ns.Kubectl("patch", "hpa", "llm-0-router", "--type=merge", "-p", `{"spec":{"minReplicas":1,"maxReplicas":99}}`)
		ns.Kubectl("label", "hpa", "llm-0-decode", "app.kubernetes.io/managed-by-")
		ns.Kubectl("label", "hpa", "llm-0-router", "team=serving")
		ns.Eventually(time.Minute, func(context.Context) error {
			got := ns.Kubectl("get", "hpa", "-o", "jsonpath={range .items[*]}{.metadata.name}={.spec.minReplicas}-{.spec.maxReplicas} {.metadata.labels.app\\.kubernetes\\.io/managed-by} {.metadata.labels.team}, {end}")
			if got != "llm-0-decode=1-7 grove-operator , llm-0-router=2-5 grove-operator serving, " {
				return fmt.Errorf("the autoscalers are %s", got)
			}
			return nil
		})
	})
	t.Run("and a termination", func(t *testing.T) {
		// What is made anew gives no metrics for a while, and keeps its size.
		unready(t, ns, "llm-0-decode-0-leader")
		ns.Kubectl("annotate", "pods", "-l", "grove.io/podclique=llm-0-router", "--overwrite", "kwok.copse.dev/never-ready=true")
		ns.WaitForPods(5+12, time.Minute, func(pod *corev1.Pod) bool {
			return pod.DeletionTimestamp == nil && pod.Labels["grove.io/restart-attempt"] != "0" && framework.IsReady(pod)
		})
		ns.Never(2*time.Second, func(context.Context) error {
			if got := ns.Kubectl("get", "pclq/llm-0-router", "pcsg/llm-0-decode", "-o", "jsonpath={.items[*].spec.replicas}"); got != "5 4" {
				return fmt.Errorf("the sizes are %s", got)
			}
			return nil
		})
	})

	// Nothing is written while nothing changes, though the autoscalers look each second.
	waitUntilAlone(ns)
	last, since := autoscalerWrites(t), time.Now()
	ns.Eventually(time.Minute, func(context.Context) error {
		if now := autoscalerWrites(t); !maps.Equal(last, now) {
			last, since = now, time.Now()
		}
		if idle := time.Since(since); idle < 3*time.Second {
			return fmt.Errorf("the last write was %s ago", idle.Round(time.Millisecond))
		}
		return nil
	})

	// Down again, the highest go, copies as wholes.
	metrics.set("requests", 1)
	metrics.set("load", 1)
	ns.WaitForPods(2+3, time.Minute, framework.IsReady)
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		pods, err := ns.Pods(ctx)
		if err != nil {
			return err
		}
		var names []string
		for i := range pods {
			names = append(names, pods[i].Spec.Hostname)
		}
		slices.Sort(names)
		want := []string{"llm-0-decode-0-leader-0", "llm-0-decode-0-worker-0", "llm-0-decode-0-worker-1", "llm-0-router-0", "llm-0-router-1"}
		if !slices.Equal(names, want) {
			return fmt.Errorf("pods are %v", names)
		}
		return nil
	})

	// Replicas of the set have autoscalers of their own, which go with them.
	ns.Kubectl("scale", "pcs", "llm", "--replicas=2")
	awaitAutoscalers(ns, "llm-0-decode", "llm-0-router", "llm-1-decode", "llm-1-router")
	waitActive(ns, "llm-1-router", "llm-1-decode")
	ns.Kubectl("scale", "pcs", "llm", "--replicas=1")
	awaitAutoscalers(ns, "llm-0-decode", "llm-0-router")
	// And with what the template says; the size stays.
	ns.Kubectl("patch", "pcs", "llm", "--type=json", "-p", `[{"op":"remove","path":"/spec/template/cliques/0/spec/autoScalingConfig"}]`)
	awaitAutoscalers(ns, "llm-0-decode")
	ns.Kubectl("scale", "pclq", "llm-0-router", "--replicas=7")
	ns.WaitForPods(7+3, time.Minute, framework.IsReady)
	ns.Kubectl("delete", "pcs", "llm")
	awaitAutoscalers(ns)
}

// follows has a cause scale something, and sees that its pods are made within a second.
func follows(t *testing.T, ns *framework.Namespace, resource, name string, to int64, pods int, cause func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client, err := dynamic.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	targets, err := client.Resource(grovev1alpha1.SchemeGroupVersion.WithResource(resource)).Namespace(ns.Name).
		Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer targets.Stop()
	list, err := cluster.Kube.CoreV1().Pods(ns.Name).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made, err := cluster.Kube.CoreV1().Pods(ns.Name).Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer made.Stop()
	cause()
	began := time.Now()
	var scaled time.Time
	for pods > 0 || scaled.IsZero() {
		select {
		case e := <-targets.ResultChan():
			if size := sizeIn(e); size == to && scaled.IsZero() {
				scaled = time.Now()
			}
		case e := <-made.ResultChan():
			if e.Type == watch.Added {
				pods--
			}
		case <-ctx.Done():
			t.Fatalf("%s %s: %d pods are missing, scaled: %v", resource, name, pods, !scaled.IsZero())
		}
	}
	took := time.Since(scaled)
	t.Logf("%s: the autoscaler scaled %s after the metric changed, all its pods were made %s later", name, scaled.Sub(began).Round(time.Millisecond), took.Round(time.Millisecond))
	if took > time.Second {
		t.Errorf("pods were made %s after their autoscaler's write", took)
	}
}

// sizeIn is the wanted size of an object in an event.
func sizeIn(e watch.Event) int64 {
	object, ok := e.Object.(interface{ UnstructuredContent() map[string]any })
	if !ok {
		return -1
	}
	spec, _ := object.UnstructuredContent()["spec"].(map[string]any)
	size, _ := spec["replicas"].(int64)
	return size
}

// waitActive waits until autoscalers have what they need to scale.
func waitActive(ns *framework.Namespace, names ...string) {
	for _, name := range names {
		// The cluster's autoscaler learns of a new kind at its next look at all kinds, twice a minute.
		ns.Eventually(2*time.Minute, func(ctx context.Context) error {
			scaler, err := cluster.Kube.AutoscalingV2().HorizontalPodAutoscalers(ns.Name).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			for _, condition := range scaler.Status.Conditions {
				if condition.Type == autoscalingv2.ScalingActive && condition.Status == corev1.ConditionTrue {
					return nil
				}
			}
			return fmt.Errorf("autoscaler %s is not active: %+v", name, scaler.Status.Conditions)
		})
	}
}

func awaitAutoscalers(ns *framework.Namespace, want ...string) {
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		list, err := cluster.Kube.AutoscalingV2().HorizontalPodAutoscalers(ns.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		if !slices.Equal(names, want) {
			return fmt.Errorf("there are autoscalers %v, want %v", names, want)
		}
		return nil
	})
}

// autoscalerWrites counts writes of autoscalers by the controllers, and of what is scaled.
func autoscalerWrites(t *testing.T) map[string]float64 {
	t.Helper()
	out := cluster.Requests(t, "kube-apiserver", func(labels map[string]string) bool {
		return labels["resource"] == "horizontalpodautoscalers" && labels["subresource"] == "" && isWrite(labels)
	})
	maps.Copy(out, cluster.Requests(t, "copse-apiserver", isWrite))
	return out
}

func isWrite(labels map[string]string) bool {
	return slices.Contains([]string{"POST", "PUT", "PATCH", "APPLY", "DELETE"}, labels["verb"])
}

func uidByHost(t *testing.T, ns *framework.Namespace) map[string]string {
	t.Helper()
	pods, err := ns.Pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for i := range pods {
		out[pods[i].Spec.Hostname] = string(pods[i].UID)
	}
	return out
}

// A scaler from outside, such as KEDA, finds a kind by discovery and knows nothing of it but
// its /scale; a program of one's own uses the generated clients. Nothing is not too few.
func TestScalersFromOutsideUseScale(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(serving(1, "    terminationDelay: 1s", ""))
	ns.WaitForPods(servingPods, time.Minute, inAttempt("0"))
	waitWasAvailable(ns, "llm-0-router")

	cached := memory.NewMemCacheClient(cluster.Kube.Discovery())
	scales, err := scale.NewForConfig(cluster.Config, restmapper.NewDeferredDiscoveryRESTMapper(cached), dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(cluster.Kube.Discovery()))
	if err != nil {
		t.Fatal(err)
	}
	router := grovev1alpha1.SchemeGroupVersion.WithResource("podcliques").GroupResource()
	decode := grovev1alpha1.SchemeGroupVersion.WithResource("podcliquescalinggroups").GroupResource()
	set := func(resource schema.GroupResource, name string, size int32) error {
		current, err := scales.Scales(ns.Name).Get(t.Context(), resource, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		current.Spec.Replicas = size
		_, err = scales.Scales(ns.Name).Update(t.Context(), resource, current, metav1.UpdateOptions{})
		return err
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	must(set(router, "llm-0-router", 5))
	must(set(decode, "llm-0-decode", 4))
	ns.WaitForPods(servingPods+3+3, time.Minute, inAttempt("0"))
	// Too few are refused, by kubectl as well.
	const refused = "must be 0, or from 2 (spec.minAvailable)"
	for name, resource := range map[string]schema.GroupResource{"llm-0-router": router, "llm-0-decode": decode} {
		if err := set(resource, name, 1); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), refused) {
			t.Errorf("to scale %s below its minimum: %v", name, err)
		}
		if out := ns.KubectlFails("scale", resource.String()+"/"+name, "--replicas=1"); !strings.Contains(out, refused) {
			t.Errorf("to scale %s below its minimum: %s", name, out)
		}
	}

	// Down to nothing, the router is idle: no breach, no termination, no part of its gang.
	copse := cluster.Copse.GroveV1alpha1()
	size, err := copse.PodCliques(ns.Name).GetScale(t.Context(), "llm-0-router", metav1.GetOptions{})
	must(err)
	size.Spec.Replicas = 0
	_, err = copse.PodCliques(ns.Name).UpdateScale(t.Context(), "llm-0-router", size, metav1.UpdateOptions{})
	must(err)
	ns.WaitForPods(0, time.Minute, func(pod *corev1.Pod) bool { return pod.Labels["grove.io/podclique"] == "llm-0-router" })
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		podGang, err := ns.PodGang(ctx, "llm-0")
		if err != nil {
			return err
		}
		for _, group := range podGang.Spec.PodGroups {
			if group.Name == "llm-0-router" && (group.MinReplicas != 0 || len(group.PodReferences) != 0) {
				return fmt.Errorf("the gang has %+v", group)
			}
		}
		return nil
	})
	ns.Never(3*time.Second, func(context.Context) error {
		if meta.IsStatusConditionTrue(ns.PodClique("llm-0-router").Status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached) {
			return fmt.Errorf("an idle clique is breached")
		}
		if status := ns.Set("llm").Status; status.AvailableReplicas != 1 {
			return fmt.Errorf("%d replicas are available", status.AvailableReplicas)
		}
		return nil
	})
	// Back again, and the group in: its highest copies go as wholes.
	must(set(router, "llm-0-router", 2))
	group, err := copse.PodCliqueScalingGroups(ns.Name).GetScale(t.Context(), "llm-0-decode", metav1.GetOptions{})
	must(err)
	group.Spec.Replicas = 2
	_, err = copse.PodCliqueScalingGroups(ns.Name).UpdateScale(t.Context(), "llm-0-decode", group, metav1.UpdateOptions{})
	must(err)
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		pods, err := ns.Pods(ctx)
		if err != nil {
			return err
		}
		copies := map[string]int{}
		for i := range pods {
			if !inAttempt("0")(&pods[i]) {
				return fmt.Errorf("pod %s is not ready, or of a later attempt", pods[i].Name)
			}
			copies[pods[i].Labels["grove.io/podcliquescalinggroup-replica-index"]]++
		}
		if want := (map[string]int{"": 2, "0": 3, "1": 3}); !maps.Equal(copies, want) {
			return fmt.Errorf("pods by copy: %v", copies)
		}
		return nil
	})
}
