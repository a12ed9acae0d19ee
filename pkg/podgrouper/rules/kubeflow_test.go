package rules_test

import (
	"strings"
	"testing"
)

// job is a Kubeflow job and one of its pods.
func kubeflowJob(kind, spec, metadata, podLabels string) string {
	return `
apiVersion: kubeflow.org/v1
kind: ` + kind + `
metadata: {name: train` + metadata + `}
spec: ` + spec + `
---
{apiVersion: v1, kind: Pod, metadata: {name: train-pod, labels: ` + podLabels + `}, under: ` + kind + `/train, spec: {}}
`
}

func TestTrainingJobs(t *testing.T) {
	const policy = "runPolicy: {schedulingPolicy: {minAvailable: 3}}, "
	runCases(t, map[string]groupCase{
		"TFJob: all pods of all types": {
			objects: kubeflowJob("TFJob", "{tfReplicaSpecs: {Chief: {}, PS: {replicas: 2}, Worker: {replicas: 4}}}", "", "{}"),
			want:    map[string]string{"train-pod": "pg-train of TFJob/train, 7; train"},
		},
		"TFJob: as many as it says": {
			objects: kubeflowJob("TFJob", "{"+policy+"tfReplicaSpecs: {PS: {replicas: 2}, Worker: {replicas: 4}}}", "", "{}"),
			want:    map[string]string{"train-pod": "pg-train of TFJob/train, 3; train"},
		},
		"TFJob: no more than there are": {
			objects: kubeflowJob("TFJob", "{"+policy+"tfReplicaSpecs: {Worker: {replicas: 2}}}", "", "{}"),
			want:    map[string]string{"train-pod": "pg-train of TFJob/train, 2; train; MinMemberTooHigh"},
		},
		"TFJob: a minimum of 0 is none": {
			objects: kubeflowJob("TFJob", "{runPolicy: {schedulingPolicy: {minAvailable: 0}}, tfReplicaSpecs: {Worker: {replicas: 2}}}", "", "{}"),
			want:    map[string]string{"train-pod": "pg-train of TFJob/train, 2; train"},
		},
		"TFJob: the annotation counts more": {
			objects: kubeflowJob("TFJob", "{"+policy+"tfReplicaSpecs: {Worker: {replicas: 4}}}", `, annotations: {scheduler.grove.io/min-member: "2"}`, "{}"),
			want:    map[string]string{"train-pod": "pg-train of TFJob/train, 2; train"},
		},
		"TFJob without pods": {
			objects: kubeflowJob("TFJob", "{}", "", "{}"),
			want:    map[string]string{"train-pod": "error: TFJob train: spec.tfReplicaSpecs: Required value: the types of pods of the job"},
		},
		"TFJob with a text for a number": {
			objects: kubeflowJob("TFJob", "{tfReplicaSpecs: {Worker: {replicas: many}}}", "", "{}"),
			want:    map[string]string{"train-pod": `error: TFJob train: spec.tfReplicaSpecs.Worker.replicas: Invalid value: "many": must be a whole number`},
		},
		"TFJob with too many": {
			objects: kubeflowJob("TFJob", "{tfReplicaSpecs: {PS: {replicas: 2147483647}, Worker: {replicas: 1}}}", "", "{}"),
			want:    map[string]string{"train-pod": "error: TFJob train: spec: Invalid value: 2147483648: the pods that have to be scheduled together must be a number from 0 to 2147483647"},
		},
		"XGBoostJob": {
			objects: kubeflowJob("XGBoostJob", "{xgbReplicaSpecs: {Master: {replicas: 1}, Worker: {replicas: 2}}}", "", "{}"),
			want:    map[string]string{"train-pod": "pg-train of XGBoostJob/train, 3; train"},
		},
		"XGBoostJob without workers": {
			objects: kubeflowJob("XGBoostJob", "{xgbReplicaSpecs: {Master: {replicas: 1}}}", "", "{}"),
			want:    map[string]string{"train-pod": "pg-train of XGBoostJob/train, 1; train"},
		},
		"XGBoostJob without a master": {
			objects: kubeflowJob("XGBoostJob", "{xgbReplicaSpecs: {Worker: {replicas: 1}}}", "", "{}"),
			want:    map[string]string{"train-pod": "error: XGBoostJob train: spec.xgbReplicaSpecs.Master: Required value: no such job goes without pods of this type"},
		},
		"JAXJob": {
			objects: kubeflowJob("JAXJob", "{jaxReplicaSpecs: {Worker: {replicas: 4}}}", "", "{}"),
			want:    map[string]string{"train-pod": "pg-train of JAXJob/train, 4; train"},
		},
		"JAXJob without workers": {
			objects: kubeflowJob("JAXJob", "{jaxReplicaSpecs: {}}", "", "{}"),
			want:    map[string]string{"train-pod": "error: JAXJob train: spec.jaxReplicaSpecs.Worker: Required value: no such job goes without pods of this type"},
		},
		"an older version": {
			objects: strings.ReplaceAll(kubeflowJob("TFJob", "{tfReplicaSpecs: {Worker: {replicas: 4}}}", "", "{}"), "kubeflow.org/v1", "kubeflow.org/v1beta2"),
			want:    map[string]string{"train-pod": "pg-train of TFJob/train, 4; train"},
		},
		"Notebook": {
			objects: `
{apiVersion: kubeflow.org/v1, kind: Notebook, metadata: {name: mine}, spec: {template: {spec: {containers: [{name: mine, image: jupyter}]}}}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: mine}, under: Notebook/mine, spec: {replicas: 1}}
---
{apiVersion: v1, kind: Pod, metadata: {name: mine-0}, under: StatefulSet/mine, spec: {}}
`,
			want: map[string]string{"mine-0": "pg-mine of Notebook/mine, 1; build"},
		},
	})
}

func TestMPIJob(t *testing.T) {
	mpi := func(spec, launcher string) string {
		return `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: horovod}
spec: {slotsPerWorker: 1, ` + spec + ` mpiReplicaSpecs: {Launcher: {replicas: 1}, Worker: {replicas: 4}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: horovod-worker-0, labels: {training.kubeflow.org/job-name: horovod, training.kubeflow.org/job-role: worker}}, under: MPIJob/horovod, spec: {}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: horovod-launcher}, under: MPIJob/horovod}
` + launcher
	}
	launcher := func(labels, more string) string {
		return `---
{apiVersion: v1, kind: Pod, metadata: {name: horovod-launcher-x, labels: {` + labels + `}` + more + `}, under: Job/horovod-launcher, spec: {}}
`
	}
	const (
		delayed = "launcherCreationPolicy: WaitForWorkersReady,"
		role    = "training.kubeflow.org/job-name: horovod, training.kubeflow.org/job-role: launcher"
		older   = "training.kubeflow.org/job-name: horovod, training.kubeflow.org/replica-type: launcher"
		other   = "training.kubeflow.org/job-name: another, training.kubeflow.org/job-role: launcher"
		going   = `, finalizers: [example.com/wait], deletionTimestamp: "2026-01-01T00:00:00Z"`
	)
	runCases(t, map[string]groupCase{
		"launcher and workers": {
			objects: mpi("", launcher(role, "")),
			want: map[string]string{
				"horovod-worker-0":   "pg-horovod of MPIJob/horovod, 5; train",
				"horovod-launcher-x": "pg-horovod of MPIJob/horovod, 5; train",
			},
		},
		"as many as it says": {
			objects: mpi("runPolicy: {schedulingPolicy: {minAvailable: 3}},", ""),
			want:    map[string]string{"horovod-worker-0": "pg-horovod of MPIJob/horovod, 3; train"},
		},
		"workers do not wait for a launcher that waits for them": {
			objects: mpi(delayed, ""),
			want:    map[string]string{"horovod-worker-0": "pg-horovod of MPIJob/horovod, 4; train"},
		},
		"nor when it says all": {
			objects: mpi(delayed+"runPolicy: {schedulingPolicy: {minAvailable: 5}},", ""),
			want:    map[string]string{"horovod-worker-0": "pg-horovod of MPIJob/horovod, 4; train"},
		},
		"more than all is a mistake": {
			objects: mpi(delayed+"runPolicy: {schedulingPolicy: {minAvailable: 6}},", ""),
			want:    map[string]string{"horovod-worker-0": "pg-horovod of MPIJob/horovod, 4; train; MinMemberTooHigh"},
		},
		"with the launcher all count": {
			objects: mpi(delayed, launcher(role, "")),
			want:    map[string]string{"horovod-worker-0": "pg-horovod of MPIJob/horovod, 5; train"},
		},
		"a launcher of the training operator": {
			objects: mpi(delayed, launcher(older, "")),
			want:    map[string]string{"horovod-worker-0": "pg-horovod of MPIJob/horovod, 5; train"},
		},
		"a launcher that goes": {
			objects: mpi(delayed, launcher(role, going)),
			want:    map[string]string{"horovod-worker-0": "pg-horovod of MPIJob/horovod, 4; train"},
		},
		"a launcher of another job": {
			objects: mpi(delayed, launcher(other, "")),
			want:    map[string]string{"horovod-worker-0": "pg-horovod of MPIJob/horovod, 4; train"},
		},
		"no workers": {
			objects: kubeflowJob("MPIJob", "{mpiReplicaSpecs: {Launcher: {}}}", "", "{}"),
			want:    map[string]string{"train-pod": "pg-train of MPIJob/train, 1; train"},
		},
		"no workers, and a launcher that waits for all of them": {
			objects: kubeflowJob("MPIJob", "{launcherCreationPolicy: WaitForWorkersReady, mpiReplicaSpecs: {Launcher: {}}}", "", "{training.kubeflow.org/job-name: train, training.kubeflow.org/job-role: launcher}"),
			want:    map[string]string{"train-pod": "pg-train of MPIJob/train, 1; train"},
		},
		"no launcher": {
			objects: kubeflowJob("MPIJob", "{mpiReplicaSpecs: {Worker: {replicas: 2}}}", "", "{}"),
			want:    map[string]string{"train-pod": "error: MPIJob train: spec.mpiReplicaSpecs.Launcher: Required value: no such job goes without pods of this type"},
		},
	})
}

func TestPyTorchJob(t *testing.T) {
	pytorch := func(spec, workerAnnotations, metadata string) string {
		return `
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: bert` + metadata + `}
spec:
  ` + spec + `
  pytorchReplicaSpecs:
    Master: {replicas: 1, template: {spec: {containers: [{name: pytorch, image: bert}]}}}
    Worker: {replicas: 5, template: {metadata: {annotations: ` + workerAnnotations + `}, spec: {containers: [{name: pytorch, image: bert}]}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: bert-master-0, labels: {training.kubeflow.org/replica-type: master, training.kubeflow.org/replica-index: "0"}}, under: PyTorchJob/bert, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: bert-worker-3, annotations: ` + workerAnnotations + `, labels: {training.kubeflow.org/replica-type: worker, training.kubeflow.org/replica-index: "3"}}, under: PyTorchJob/bert, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: bert-worker-x, annotations: ` + workerAnnotations + `, labels: {training.kubeflow.org/replica-type: worker}}, under: PyTorchJob/bert, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: bert-x}, under: PyTorchJob/bert, spec: {}}
`
	}
	const (
		minimum  = "runPolicy: {schedulingPolicy: {minAvailable: 4}}"
		elastic  = "elasticPolicy: {minReplicas: 3, maxReplicas: 6}"
		segments = `{kai.scheduler/segment-size: "2", kai.scheduler/topology: dc, kai.scheduler/segment-topology-required-placement: rack, kai.scheduler/segment-topology-preferred-placement: host}`
	)
	runCases(t, map[string]groupCase{
		"master and workers": {
			objects: pytorch("", "{}", ""),
			want: map[string]string{
				"bert-master-0": "pg-bert of PyTorchJob/bert, 6; train; master 1; worker 5; in master",
				"bert-worker-3": "pg-bert of PyTorchJob/bert, 6; train; master 1; worker 5; in worker",
				"bert-x":        "pg-bert of PyTorchJob/bert, 6; train; master 1; worker 5; MissingLabel",
			},
		},
		"an elastic job": {
			objects: pytorch(elastic, "{}", ""),
			want:    map[string]string{"bert-worker-3": "pg-bert of PyTorchJob/bert, 3; train; master 1; worker 2; in worker"},
		},
		"a minimum counts more than elastic": {
			objects: pytorch(minimum+"\n  "+elastic, "{}", ""),
			want:    map[string]string{"bert-worker-3": "pg-bert of PyTorchJob/bert, 4; train; master 1; worker 3; in worker"},
		},
		"the annotation is in pods": {
			objects: pytorch(minimum, "{}", `, annotations: {scheduler.grove.io/min-member: "2"}`),
			want:    map[string]string{"bert-worker-3": "pg-bert of PyTorchJob/bert, 2; train"},
		},
		"no master": {
			objects: kubeflowJob("PyTorchJob", "{pytorchReplicaSpecs: {Worker: {replicas: 2}}}", "", "{training.kubeflow.org/replica-type: Worker}"),
			want:    map[string]string{"train-pod": "pg-train of PyTorchJob/train, 2; train; worker 2; in worker"},
		},
		"masters beyond the minimum": {
			objects: kubeflowJob("PyTorchJob", "{runPolicy: {schedulingPolicy: {minAvailable: 1}}, pytorchReplicaSpecs: {Master: {replicas: 2}, Worker: {replicas: 2}}}", "", "{training.kubeflow.org/replica-type: master}"),
			want:    map[string]string{"train-pod": "pg-train of PyTorchJob/train, 1; train; master 1; worker 0; in master"},
		},
		"a master alone": {
			objects: kubeflowJob("PyTorchJob", "{pytorchReplicaSpecs: {Master: {replicas: 1}}}", "", "{training.kubeflow.org/replica-type: master}"),
			want:    map[string]string{"train-pod": "pg-train of PyTorchJob/train, 1; train; master 1; in master"},
		},
		"segments": {
			objects: pytorch("", segments, ""),
			want: map[string]string{
				"bert-worker-3": "pg-bert of PyTorchJob/bert, 2 groups; train; master 1; worker 3 groups; worker/worker-0 2 on dc:rack:host; worker/worker-1 2 on dc:rack:host; worker/worker-2 1 on dc:rack:host; in worker-1",
				"bert-master-0": "pg-bert of PyTorchJob/bert, 2 groups; train; master 1; worker 3 groups; worker/worker-0 2 on dc:rack:host; worker/worker-1 2 on dc:rack:host; worker/worker-2 1 on dc:rack:host; in master",
				"bert-worker-x": "pg-bert of PyTorchJob/bert, 2 groups; train; master 1; worker 3 groups; worker/worker-0 2 on dc:rack:host; worker/worker-1 2 on dc:rack:host; worker/worker-2 1 on dc:rack:host; MissingLabel",
			},
		},
		"segments of an elastic job": {
			objects: pytorch(elastic, `{kai.scheduler/segment-size: "2"}`, ""),
			want:    map[string]string{"bert-worker-3": "pg-bert of PyTorchJob/bert, 2 groups; train; master 1; worker 3 groups; worker/worker-0 2; worker/worker-1 0; worker/worker-2 0; in worker-1"},
		},
		"segments by the job, not by the template": {
			objects: pytorch("", `{kai.scheduler/segment-size: "2"}`, `, annotations: {kai.scheduler/segment-size: "5"}`),
			want:    map[string]string{"bert-worker-3": "pg-bert of PyTorchJob/bert, 2 groups; train; master 1; worker 1 groups; worker/worker-0 5; in worker-0"},
		},
		"segments larger than the job": {
			objects: pytorch("", `{kai.scheduler/segment-size: "9"}`, ""),
			want:    map[string]string{"bert-worker-3": "pg-bert of PyTorchJob/bert, 2 groups; train; master 1; worker 1 groups; worker/worker-0 5; in worker-0"},
		},
		"segments of no size": {
			objects: pytorch("", `{kai.scheduler/segment-size: two}`, ""),
			want:    map[string]string{"bert-worker-3": "pg-bert of PyTorchJob/bert, 6; train; master 1; worker 5; in worker; InvalidOverride"},
		},
		"segments on no topology": {
			objects: pytorch("", `{kai.scheduler/segment-size: "5", kai.scheduler/segment-topology-required-placement: rack}`, ""),
			want:    map[string]string{"bert-worker-3": "pg-bert of PyTorchJob/bert, 2 groups; train; master 1; worker 1 groups; worker/worker-0 5; in worker-0; IncompleteTopology"},
		},
		"too many segments": {
			objects: kubeflowJob("PyTorchJob", "{pytorchReplicaSpecs: {Worker: {replicas: 2000000000}}}", `, annotations: {kai.scheduler/segment-size: "1"}`, "{training.kubeflow.org/replica-type: worker, training.kubeflow.org/replica-index: '7'}"),
			want:    map[string]string{"train-pod": "error: PyTorchJob train: spec.pytorchReplicaSpecs.Worker.replicas: Too many: 2000000000: must have at most 9998 items"},
		},
		"the whole on one rack": {
			objects: kubeflowJob("PyTorchJob", "{pytorchReplicaSpecs: {Worker: {replicas: 2}}}", `, annotations: {kai.scheduler/topology: dc, kai.scheduler/topology-required-placement: rack}`, "{training.kubeflow.org/replica-type: worker}"),
			want:    map[string]string{"train-pod": "pg-train of PyTorchJob/train, 2; on dc:rack:; train; worker 2; in worker"},
		},
	})
}
