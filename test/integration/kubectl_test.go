package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/copse-dev/copse/test/framework"
)

const training = `
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: job}
spec:
  replicas: 1
  workloadType: Training
  template:
    cliques:
      - name: worker
        annotations: {kwok.copse.dev/exit-after: 2s}
        spec:
          replicas: 2
          podSpec:
            containers: [{name: main, image: example.com/trainer}]
`

const inference = `
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: llm}
spec:
  replicas: 1
  template:
    cliques:
      - name: server
        spec:
          replicas: 2
          podSpec:
            containers: [{name: main, image: example.com/server}]
      - name: router
        spec:
          replicas: 1
          podSpec:
            containers: [{name: main, image: example.com/router}]
`

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}

func TestAPIResourcesListEveryKindWithItsShortName(t *testing.T) {
	ns := cluster.Namespace(t)
	out := ns.Kubectl("api-resources", "--api-group=grove.io") + ns.Kubectl("api-resources", "--api-group=scheduler.grove.io")
	for resource, shortName := range map[string]string{
		"podcliquesets": "pcs", "podcliques": "pclq", "podcliquescalinggroups": "pcsg", "clustertopologybindings": "ct", "startgates": "sgate", "podgangs": "pg",
	} {
		found := false
		for _, line := range strings.Split(out, "\n") {
			fields := strings.Fields(line)
			found = found || (len(fields) > 1 && fields[0] == resource && fields[1] == shortName)
		}
		if !found {
			t.Errorf("%s (%s) is missing in:\n%s", resource, shortName, out)
		}
	}
	contains(t, out, "podgroups")
}

func TestExplainDescribesFields(t *testing.T) {
	ns := cluster.Namespace(t)
	// The cluster gathers the OpenAPI of an aggregated API some time after it serves it.
	ns.Eventually(2*time.Minute, func(context.Context) error {
		out := ns.Kubectl("explain", "pcs.spec.trainingSpec")
		if !strings.Contains(out, "maxRestarts") || !strings.Contains(out, "how many times failed replicas are restarted") {
			return fmt.Errorf("explain says:\n%s", out)
		}
		return nil
	})
	contains(t, ns.Kubectl("explain", "pcs.spec.template.cliques.spec.podSpec.containers"), "image")
	contains(t, ns.Kubectl("explain", "podgroups.scheduler.grove.io.spec"), "minMember", "queue")
}

func TestGetAndWatchShowATrainingSetUntilItHasSucceeded(t *testing.T) {
	ns := cluster.Namespace(t)
	watched := ns.StartKubectl("get", "pcs", "-w")
	contains(t, ns.Apply(training), "job created")
	ns.WaitFor("pcs/job", "jsonpath={.status.phase}=Succeeded")

	contains(t, ns.Kubectl("get", "pcs"), "NAME", "TYPE", "PHASE", "REPLICAS", "PODS", "RESTARTS", "WAITING FOR", "AGE", "Training", "Succeeded", "1/1", "2/2", "0/0")
	contains(t, ns.Kubectl("get", "pcs", "-o", "wide"), "STARTED", "DURATION", "HASH")
	if out := ns.Kubectl("get", "pcs", "--no-headers"); strings.Contains(out, "NAME") {
		t.Errorf("--no-headers has headers: %s", out)
	}
	ns.Eventually(10*time.Second, func(context.Context) error {
		out := watched()
		for _, phase := range []string{"Pending", "Running", "Succeeded"} {
			if !strings.Contains(out, phase) {
				return fmt.Errorf("the watch has not shown %s:\n%s", phase, out)
			}
		}
		return nil
	})
	contains(t, ns.Kubectl("get", "all"), "podcliqueset.grove.io/job")
	contains(t, ns.Kubectl("get", "grove"), "podclique.grove.io/job-0-worker", "podgang.scheduler.grove.io/job-0")
	contains(t, ns.Kubectl("describe", "pcs", "job"), "Succeeded", "AllReplicasSucceeded", "Start Time")
	contains(t, ns.Kubectl("describe", "pclq", "job-0-worker"), "Completed Indexes", "0-1")
	contains(t, ns.Kubectl("get", "pclq,pg"), "job-0-worker", "Scheduled")
}

func TestSetsAreSelectedByPhaseAndType(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.Apply(training)
	ns.Apply(inference)
	ns.WaitFor("pcs/job", "jsonpath={.status.phase}=Succeeded")
	if out := ns.Kubectl("get", "pcs", "--field-selector=status.phase=Succeeded", "-o", "name"); out != "podcliqueset.grove.io/job\n" {
		t.Errorf("selected by phase: %s", out)
	}
	if out := ns.Kubectl("get", "pcs", "--field-selector=spec.workloadType=Inference", "-o", "name"); out != "podcliqueset.grove.io/llm\n" {
		t.Errorf("selected by type: %s", out)
	}
	contains(t, ns.KubectlFails("get", "pcs", "--field-selector=spec.nonsense=1"), "spec.nonsense", "status.phase")
}

// Children are selected by what their kinds have of that; whoever names another field is
// told which there are.
func TestChildrenAreSelectedByTypeAndPhase(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.Apply(training)
	ns.Apply(grouped)
	ns.WaitFor("pg/llm-0", "jsonpath={.status.phase}=Running")
	ns.WaitFor("pcs/job", "jsonpath={.status.phase}=Succeeded")
	for args, want := range map[string]string{
		"pclq --field-selector=spec.workloadType=Training":                              "podclique.grove.io/job-0-worker",
		"pclq --field-selector=spec.workloadType!=Training,metadata.name!=llm-0-server": "podclique.grove.io/llm-0-decode-0-worker",
		"pcsg --field-selector=spec.workloadType=Inference":                             "podcliquescalinggroup.grove.io/llm-0-decode",
		"pcsg --field-selector=spec.workloadType=Training":                              "",
		"pg --field-selector=status.phase=Running,metadata.name=llm-0":                  "podgang.scheduler.grove.io/llm-0",
		"pg --field-selector=status.phase=Pending":                                      "",
		"podgroups.scheduler.grove.io --field-selector=status.phase=Running":            "",
		"startgates,ct --field-selector=metadata.name=nothing":                          "",
	} {
		if got := strings.TrimSpace(ns.Kubectl(append([]string{"get", "-o", "name"}, strings.Fields(args)...)...)); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
	for kind, fields := range map[string][]string{
		"pclq": {"spec.workloadType"}, "pcsg": {"spec.workloadType"}, "pg": {"status.phase"}, "podgroups.scheduler.grove.io": {"status.phase"}, "startgates": nil,
	} {
		out := ns.KubectlFails("get", kind, "--field-selector=spec.nonsense=1")
		contains(t, out, append(fields, "BadRequest", "spec.nonsense", "metadata.name", "metadata.namespace")...)
	}
}

func TestApplyingTheSameManifestAgainWritesNothing(t *testing.T) {
	ns := cluster.Namespace(t)
	for name, flags := range map[string][]string{"client side": nil, "server side": {"--server-side"}} {
		t.Run(name, func(t *testing.T) {
			ns.Apply(inference, flags...)
			ns.WaitFor("pcs/llm", "jsonpath={.status.availableReplicas}=1")
			before := ns.Kubectl("get", "pcs", "llm", "-o", "jsonpath={.metadata.resourceVersion} {.metadata.generation}")
			out := ns.Apply(inference, flags...)
			after := ns.Kubectl("get", "pcs", "llm", "-o", "jsonpath={.metadata.resourceVersion} {.metadata.generation}")
			if before != after {
				t.Errorf("the second apply wrote: %s before, %s after; %s", before, after, out)
			}
			if len(flags) == 0 {
				contains(t, out, "unchanged")
			}
			ns.Kubectl("delete", "pcs", "llm", "--timeout=60s")
		})
	}
}

// The server stores a default for minMember, which nobody's manifest names: it must not stand
// in the way of minSubGroup, and comes back.
func TestAPodGroupIsAppliedWithAnotherKindOfMinimum(t *testing.T) {
	ns := cluster.Namespace(t)
	const group = `
apiVersion: scheduler.grove.io/v1alpha1
kind: PodGroup
metadata: {name: mine}
spec: {queue: team`
	const members, subGroups = group + "}\n", group + ", minSubGroup: 1, subGroups: [{name: a, minMember: 1}]}\n"
	for name, flags := range map[string][]string{"client side": nil, "server side": {"--server-side"}} {
		t.Run(name, func(t *testing.T) {
			for _, step := range []struct{ manifest, want string }{{members, "1/"}, {subGroups, "/1"}, {subGroups, "/1"}, {members, "1/"}} {
				ns.Apply(step.manifest, flags...)
				if got := ns.Kubectl("get", "podgroups.scheduler.grove.io", "mine", "-o", "jsonpath={.spec.minMember}/{.spec.minSubGroup}"); got != step.want {
					t.Errorf("minMember/minSubGroup is %s, want %s", got, step.want)
				}
			}
			ns.Apply(strings.Replace(members, "team}", "team, minMember: 2}", 1), flags...)
			contains(t, ns.ApplyFails(strings.Replace(subGroups, "minSubGroup", "minMember: 2, minSubGroup", 1), flags...), "excludes minMember")
			ns.Kubectl("delete", "podgroups.scheduler.grove.io", "mine")
		})
	}
}

// A delay that no manifest names, as that of --default-termination-delay, outlasts applies.
func TestATerminationDelayEndsWithAReplaceOrAnExplicitNull(t *testing.T) {
	ns := cluster.Namespace(t)
	null := strings.Replace(inference, "  template:\n", "  template:\n    terminationDelay: null\n", 1)
	delay := func(step, want string) {
		t.Helper()
		if got := ns.Kubectl("get", "pcs", "llm", "-o", "jsonpath={.spec.template.terminationDelay}"); got != want {
			t.Errorf("after %s the delay is %q, want %q", step, got, want)
		}
	}
	for name, flags := range map[string][]string{"client side": nil, "server side": {"--server-side"}} {
		t.Run(name, func(t *testing.T) {
			ns.Apply(inference, flags...)
			give := func() {
				ns.Kubectl("patch", "pcs", "llm", "--type=merge", "-p", `{"spec":{"template":{"terminationDelay":"4h"}}}`)
			}
			give()
			ns.Apply(strings.Replace(inference, "replicas: 1", "replicas: 2", 1), flags...)
			delay("an apply without the field", "4h0m0s")
			ns.Apply(null, append(flags, "--force-conflicts="+strconv.FormatBool(len(flags) > 0))...)
			delay("an apply of null", "")
			give()
			file := filepath.Join(t.TempDir(), "set.yaml")
			if err := os.WriteFile(file, []byte(inference), 0o600); err != nil {
				t.Fatal(err)
			}
			ns.Kubectl("replace", "-f", file)
			delay("a replace without the field", "")
			ns.Kubectl("delete", "pcs", "llm", "--timeout=60s")
		})
	}
}

func TestDiffShowsAChangeAndNothingElse(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.Apply(inference)
	same := filepath.Join(t.TempDir(), "same.yaml")
	if err := os.WriteFile(same, []byte(inference), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := ns.Kubectl("diff", "-f", same); out != "" {
		t.Errorf("an unchanged manifest differs:\n%s", out)
	}
	changed := filepath.Join(t.TempDir(), "changed.yaml")
	if err := os.WriteFile(changed, []byte(strings.Replace(inference, "example.com/router", "example.com/router:2", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	out := ns.KubectlFails("diff", "-f", changed)
	contains(t, out, "+          - image: example.com/router:2")
	if strings.Contains(out, "example.com/server") && strings.Contains(out, "+          - image: example.com/server") {
		t.Errorf("diff shows what does not change:\n%s", out)
	}
}

func TestServerSideApplyOwnsWhatItNamesAndNoStatus(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.Apply(inference, "--server-side", "--field-manager=one")
	// Another manager owns another clique's image only.
	ns.Apply(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: llm}
spec:
  template:
    cliques:
      - name: router
        labels: {tier: edge}
`, "--server-side", "--field-manager=two")
	contains(t, ns.Kubectl("get", "pcs", "llm", "-o", "jsonpath={.spec.template.cliques[?(@.name=='router')].labels.tier}"), "edge")
	if n := strings.Count(ns.Kubectl("get", "pcs", "llm", "-o", "jsonpath={.spec.template.cliques[*].name}"), " "); n != 1 {
		t.Errorf("the merge by name made another clique")
	}
	out := ns.ApplyFails(strings.Replace(inference, "example.com/server", "example.com/other", 1), "--server-side", "--field-manager=three")
	contains(t, out, "conflict", `"one"`, "image")
	// A full object, status included, makes nobody an owner of status.
	ns.Apply(inference+"status: {phase: Failed, replicas: 7}\n", "--server-side", "--field-manager=one")
	for _, field := range strings.Fields(ns.Kubectl("get", "pcs", "llm", "--show-managed-fields", "-o", "jsonpath={range .metadata.managedFields[?(@.manager=='one')]}{.fieldsV1}{end}")) {
		if strings.Contains(field, "f:status") {
			t.Errorf("the applier owns status: %s", field)
		}
	}
	if phase := ns.Kubectl("get", "pcs", "llm", "-o", "jsonpath={.status.phase}"); phase == "Failed" {
		t.Error("an apply through the main endpoint wrote the status")
	}
}

func TestScaleChangesInferenceAndIsRefusedInTraining(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.Apply(inference)
	contains(t, ns.Kubectl("scale", "pcs", "llm", "--replicas=2"), "scaled")
	ns.WaitForPods(6, time.Minute, framework.IsReady)
	contains(t, ns.Kubectl("get", "--raw", "/apis/grove.io/v1alpha1/namespaces/"+ns.Name+"/podcliquesets/llm/scale"),
		`"kind":"Scale"`, `"apiVersion":"autoscaling/v1"`, `"replicas":2`, "app.kubernetes.io/part-of=llm")
	ns.Apply(strings.Replace(training, "exit-after: 2s", "exit-after: 1h", 1))
	contains(t, ns.KubectlFails("scale", "pcs", "job", "--replicas=2"), "spec.replicas", "immutable in Training")
	contains(t, ns.KubectlFails("scale", "pcs", "llm", "--replicas=-1"), "must be")
	ns.WaitForPods(8, time.Minute, framework.IsReady)
	contains(t, ns.KubectlFails("scale", "pclq", "job-0-worker", "--replicas=3"), "spec.replicas", "immutable in Training")
}

func TestStrategicMergePatchChangesOneCliqueByName(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.Apply(inference)
	ns.Kubectl("patch", "pcs", "llm", "--type=strategic", "-p", `{"spec":{"template":{"cliques":[{"name":"router","labels":{"tier":"edge"}}]}}}`)
	if out := ns.Kubectl("get", "pcs", "llm", "-o", "jsonpath={.spec.template.cliques[*].name}:{.spec.template.cliques[1].labels.tier}"); out != "server router:edge" {
		t.Errorf("after the patch: %s", out)
	}
}

func TestDeleteWithEveryPropagationPolicy(t *testing.T) {
	ns := cluster.Namespace(t)
	for _, policy := range []string{"background", "foreground"} {
		ns.Apply(inference)
		ns.WaitForPods(3, time.Minute, framework.IsReady)
		ns.Kubectl("delete", "pcs", "llm", "--cascade="+policy, "--timeout=90s")
		ns.Eventually(time.Minute, func(context.Context) error {
			if out := ns.Kubectl("get", "pods,pclq,pg,svc", "-o", "name"); out != "" {
				return fmt.Errorf("%s deletion left:\n%s", policy, out)
			}
			return nil
		})
	}
	ns.Apply(inference)
	ns.WaitForPods(3, time.Minute, framework.IsReady)
	ns.Kubectl("delete", "pcs", "llm", "--cascade=orphan", "--timeout=90s")
	ns.WaitForPods(3, 5*time.Second, framework.IsReady)
	contains(t, ns.Kubectl("get", "pclq", "-o", "name"), "llm-0-server", "llm-0-router")
}

// Deleting the namespace takes everything along.
func TestDeletingTheNamespaceLeavesNothing(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.Apply(inference)
	ns.WaitForPods(3, time.Minute, framework.IsReady)
	ns.Kubectl("delete", "namespace", ns.Name, "--timeout=120s")
}
