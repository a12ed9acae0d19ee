package rules_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/config"
)

// Owners are of kinds that others define, and maybe of a version that is not known here. So
// whatever stands in a field, the answer is a group that the API takes, or an error that is
// the owner's; never a panic, and never an answer that takes for ever.
func TestWhateverStandsInAField(t *testing.T) {
	scenes := map[string]struct{ objects, kind, pod string }{
		"Deployment":      {deploymentWithMinimum, "Deployment", "old-a"},
		"Job":             {"{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {parallelism: 2, completions: 3}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: p}, under: Job/a, spec: {}}", "Job", "p"},
		"StatefulSet":     {"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {replicas: 2, podManagementPolicy: Parallel}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: p}, under: StatefulSet/a, spec: {}}", "StatefulSet", "p"},
		"MPIJob":          {kubeflowJob("MPIJob", "{launcherCreationPolicy: WaitForWorkersReady, mpiReplicaSpecs: {Launcher: {replicas: 1}, Worker: {replicas: 2}}}", "", "{}"), "MPIJob", "train-pod"},
		"XGBoostJob":      {kubeflowJob("XGBoostJob", "{runPolicy: {schedulingPolicy: {minAvailable: 2}}, xgbReplicaSpecs: {Master: {replicas: 1}, Worker: {replicas: 2}}}", "", "{}"), "XGBoostJob", "train-pod"},
		"PyTorchJob":      {kubeflowJob("PyTorchJob", "{elasticPolicy: {minReplicas: 2}, pytorchReplicaSpecs: {Master: {replicas: 1}, Worker: {replicas: 4, template: {metadata: {annotations: {kai.scheduler/segment-size: '2'}}}}}}", "", "{training.kubeflow.org/replica-type: master}"), "PyTorchJob", "train-pod"},
		"JobSet":          {replace(jobSet, "ORDER", "startupPolicy: {startupPolicyOrder: AnyOrder}", "DEPENDS", "dependsOn: []"), "JobSet", "llm-driver-0-0-x"},
		"LeaderWorkerSet": {lwsScene("startupPolicy: LeaderCreated, leaderWorkerTemplate: {size: 4, subGroupPolicy: {subGroupSize: 2, subGroupPolicyType: LeaderWorker}}", `{leaderworkerset.sigs.k8s.io/subgroup-size: "2"}`, true, "{}"), "LeaderWorkerSet", "vllm-1"},
		"RayCluster":      {rayCluster("enableInTreeAutoscaling: true, workerGroupSpecs: [{groupName: GPU_group, replicas: 2, minReplicas: 1, maxReplicas: 3, numOfHosts: 2, suspend: false}]", ""), "RayCluster", "ray-head"},
	}
	for name, tc := range scenes {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, tc.objects, config.Config{})
			pod := &corev1.Pod{}
			if err := s.reader.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: tc.pod}, pod); err != nil {
				t.Fatal(err)
			}
			chain, err := s.owners.Find(t.Context(), pod)
			if err != nil {
				t.Fatal(err)
			}
			owner := chain.Owners[len(chain.Owners)-1]
			tries, errs := 0, 0
			try := func(path string, mutated map[string]any) {
				reader := interceptor.NewClient(s.reader.(client.WithWatch), interceptor.Funcs{
					Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
						if err := c.Get(ctx, key, obj, opts...); err != nil {
							return err
						}
						if read, ok := obj.(*unstructured.Unstructured); ok && read.GetKind() == tc.kind {
							read.Object["spec"] = mutated["spec"]
						}
						return nil
					},
				})
				tries++
				group, err := s.grouper().Describe(t.Context(), pod, chain, reader)
				if err != nil {
					errs++
					if !podgrouper.IsInvalid(err) || !strings.Contains(err.Error(), "spec") {
						t.Errorf("%s: %v", path, err)
					}
					return
				}
				checkAPI(t, group)
			}
			spec := &unstructured.Unstructured{}
			spec.SetGroupVersionKind(owner.GroupVersionKind())
			if err := s.reader.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: owner.Name}, spec); err != nil {
				t.Fatal(err)
			}
			mutate(map[string]any{"spec": spec.Object["spec"]}, try)
			if errs == 0 {
				t.Errorf("none of %d owners was refused", tries)
			}
		})
	}
}

// mutate tries an object with each of its parts replaced by what does not belong there.
func mutate(object map[string]any, try func(path string, mutated map[string]any)) {
	junk := []any{nil, "junk", "", true, int64(-1), int64(0), int64(math.MaxInt32), int64(math.MaxInt64), 1.5, math.Inf(1), []any{}, []any{nil, "junk"}, map[string]any{}, map[string]any{"junk": []any{int64(1)}}}
	var walk func(at any, path string)
	replaced := func(path string, set func(any), old any) {
		for i, value := range junk {
			set(value)
			try(fmt.Sprintf("%s = junk %d", path, i), object)
		}
		set(old)
	}
	walk = func(at any, path string) {
		switch part := at.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(part)) {
				old := part[key]
				replaced(path+"."+key, func(value any) { part[key] = value }, old)
				walk(old, path+"."+key)
			}
		case []any:
			for i, old := range part {
				replaced(fmt.Sprintf("%s[%d]", path, i), func(value any) { part[i] = value }, old)
				walk(old, fmt.Sprintf("%s[%d]", path, i))
			}
		}
	}
	walk(object, "")
}
